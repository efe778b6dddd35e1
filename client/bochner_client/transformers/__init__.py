"""Transformers for scikit-learn that use maps of a service."""

from bochner_client.transformers.feature_map import FeatureMap
from bochner_client.transformers.hash_map import HashMap

__all__ = ["FeatureMap", "HashMap"]
