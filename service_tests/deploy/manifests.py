"""The resources of deploy/kubernetes, put together as `kubectl apply --kustomize` does."""

from pathlib import Path
from typing import Any

import yaml

Resource = dict[str, Any]
ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"
OVERLAYS = ("base", "with-store")
UNDERSTOOD = {
    "apiVersion",
    "kind",
    "namespace",
    "labels",
    "resources",
    "configMapGenerator",
    "secretGenerator",
    "images",
}


def built(directory: Path) -> list[Resource]:
    """The resources of a kustomization, by the few rules that ours use; AssertionError where it uses another.

    Generated names keep no hash, and tags of images are not set: neither matters to what refers to what.
    """
    kustomization = yaml.safe_load((directory / "kustomization.yaml").read_text())
    assert kustomization.keys() <= UNDERSTOOD, f"{kustomization.keys() - UNDERSTOOD} is not understood here"
    found: list[Resource] = []
    for name in kustomization["resources"]:
        path = directory / name
        found += built(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
    for one in kustomization.get("configMapGenerator", []):
        lines = [line for name in one["envs"] for line in (directory / name).read_text().splitlines()]
        data = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
        found.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": one["name"]}, "data": data})
    for one in kustomization.get("secretGenerator", []):
        data = {Path(name).name: "" for name in one["files"]}
        found.append({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": one["name"]}, "stringData": data})
    for resource in found:
        if resource["kind"] != "Namespace":
            resource["metadata"]["namespace"] = kustomization["namespace"]
    return found


def of_kind(resources: list[Resource], *kinds: str) -> list[Resource]:
    """Those of some kinds."""
    return [resource for resource in resources if resource["kind"] in kinds]


def pods(resources: list[Resource]) -> dict[str, Resource]:
    """The templates of pods, by the name of what makes them."""
    makers = of_kind(resources, "Deployment", "StatefulSet")
    return {maker["metadata"]["name"]: maker["spec"]["template"] for maker in makers}


def chosen(selector: Resource, of: dict[str, Resource]) -> set[str]:
    """Which pods a selector of labels takes: its matchLabels, and its matchExpressions with `In`."""
    return {
        name
        for name, pod in of.items()
        if selector.get("matchLabels", {}).items() <= pod["metadata"]["labels"].items()
        and all(
            one["operator"] == "In" and pod["metadata"]["labels"].get(one["key"]) in one["values"]
            for one in selector.get("matchExpressions", [])
        )
    }
