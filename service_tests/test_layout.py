"""The tests of app/x/y.py are in service_tests/x/test_y.py, the client's in service_tests/client; or ELSEWHERE."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
APP = TESTS.parent / "app"
CLIENT = TESTS.parent / "client" / "bochner_client"

ELSEWHERE: dict[str, dict[str, str]] = {
    "shows only in answers over HTTP": {
        "api/context.py": "api/test_admission.py",
        "api/gauges.py": "api/test_observed.py",
        "connections/flow.py": "connections/test_protocol.py",
        "api/documents.py": "test_openapi.py",
        "api/schemas.py": "test_openapi.py",
        "api/array_documents.py": "test_openapi.py",
        "api/index_documents.py": "test_openapi.py",
        "core/indexes/options.py": "api/routes/test_indexes.py",
        "formats/index_bodies.py": "api/test_index_batches.py",
        "services/index_search.py": "api/test_index_searches.py",
        "services/index_spec.py": "api/routes/test_indexes.py",
        "services/index_vectors.py": "api/test_index_searches.py",
        "services/indexes.py": "api/routes/test_indexes.py",
        "api/routes/vectors.py": "api/test_features.py",  # and test_codes.py, test_kernel.py, test_similarity.py
        "api/measured_answers.py": "api/test_long_work.py",
        "services/advice.py": "api/routes/test_advice.py",
        "services/index_duplicates.py": "api/routes/test_duplicates.py",
        "core/maps/min_max_codes.py": "api/test_similarity.py",
        "main.py": "api/test_problems.py",
        "wiring.py": "api/test_problems.py",
        "handlers.py": "api/test_long_work.py",
        "services/dataset_records.py": "api/routes/test_datasets.py",
        "services/errors.py": "api/test_problems.py",
        "services/figures.py": "api/routes/test_metrics.py",
        "in_work.py": "api/test_observed.py",
        "metrics/meters.py": "api/test_observed.py",
        "metrics/heartbeat.py": "api/routes/test_metrics.py",
        "services/hashing.py": "api/test_codes.py",
        "services/keys.py": "api/routes/test_keys.py",
        "services/labelled.py": "api/test_labelled.py",
        "services/limits.py": "api/test_huge_dimensions.py",
        "services/map_records.py": "api/routes/test_maps.py",
        "services/recommendations.py": "api/test_recommendations.py",
        "services/preconditions.py": "api/test_etags.py",
        "services/results.py": "api/test_answers_in_blocks.py",
        "services/status.py": "api/routes/test_service.py",
        "services/vectors.py": "api/test_features.py",
        "services/tensors.py": "api/routes/test_inference.py",
        "formats/open_inference.py": "api/routes/test_inference.py",
        "api/inference_document.py": "test_openapi.py",
        "formats/json_measurements.py": "api/test_bad_diagnostics.py",
    },
    "a part of something larger, whose tests try it": {
        "core/building.py": "core/samplers/test_learning.py",
        "core/diagnostics/agreement_counts.py": "core/diagnostics/test_collisions.py",
        "core/diagnostics/box_discrepancy.py": "core/discrepancy/test_box_discrepancy.py",
        "core/diagnostics/error_matrix.py": "core/diagnostics/test_gram.py",
        "core/discrepancy/measure.py": "core/discrepancy/test_row_differences.py",
        "core/errors.py": "core/test_arrays.py",
        "core/hashing/sampling.py": "core/hashing/test_reimplementation.py",
        "core/hashing/dart_cells.py": "core/hashing/test_darts.py",
        "core/kernels/chi_squared_sums.py": "core/kernels/test_chi_squared.py",
        "core/kernels/subset_sums.py": "core/kernels/test_anova.py",
        "core/kernels/min_max.py": "core/kernels/test_gmm.py",
        "store/index_manifest.py": "store/test_indexes.py",
        "store/servers.py": "store/test_connection.py",  # and test_clients.py
        "core/maps/base.py": "core/maps/test_families.py",
        "core/maps/weighted_minhash.py": "core/maps/test_consistent_sampling.py",  # and test_collision_rates.py
        "core/maps/fourier/features.py": "core/maps/fourier/test_fourier_map.py",
        "core/maps/fourier/phases.py": "core/maps/fourier/test_fourier_map.py",
        "core/maps/fourier/inner_products.py": "core/maps/fourier/test_fourier_map.py",
        "core/maps/fourier/fourier_specs.py": "core/maps/test_families.py",
        "core/maps/fourier/signed_codes.py": "core/maps/fourier/test_signs.py",
        "core/maps/fourier/projection.py": "core/maps/fourier/test_dense.py",  # and test_structured.py
        "core/maps/fourier/spectral.py": "core/maps/fourier/test_drawing.py",
        "core/kernels/scaled.py": "core/kernels/test_gaussian.py",
        "core/maps/optional_results.py": "core/maps/test_families.py",
        "core/maps/landmarks/arrays.py": "core/maps/landmarks/test_landmark_specs.py",
        "core/maps/landmarks/samplers.py": "core/maps/landmarks/test_landmark_specs.py",
        "core/maps/terms.py": "core/test_spec.py",
        "core/indexes/advice_drawing.py": "core/indexes/test_advice.py",
        "core/indexes/costs.py": "core/indexes/test_advice.py",
        "core/hashing/code_laws.py": "services/test_index_codes.py",
        "core/indexes/clusters.py": "core/indexes/test_duplicates.py",
        "core/indexes/differences.py": "core/indexes/test_scanning.py",
        "core/panel_products.py": "core/test_panels.py",
        "core/recommendations/measuring.py": "core/recommendations/test_trials.py",
        "core/samplers/global_adaptive.py": "core/samplers/test_adaptive.py",
        "core/samplers/greedy_adaptive.py": "core/samplers/test_adaptive.py",
        "core/samplers/points.py": "core/samplers/test_moment_matching.py",
        "core/tiles.py": "core/test_panels.py",
        "core/maps/taken_map.py": "formats/exports/test_npz.py",
        **dict.fromkeys(
            (
                f"formats/arrow_ipc/{part}.py"
                for part in ("answer", "columns", "flatbuffers", "rows", "stream", "types")
            ),
            "formats/test_arrow.py",
        ),
        "formats/base.py": "formats/test_npy.py",
        "formats/exports/base.py": "formats/exports/test_npz.py",
        "formats/exports/fourier_graph.py": "formats/exports/test_onnx.py",
        "formats/exports/onnx_graph.py": "formats/exports/test_onnx.py",
        "formats/exports/protobuf.py": "formats/exports/test_onnx.py",
        "formats/exports/rotation_graph.py": "formats/exports/test_onnx.py",
        "formats/pairs.py": "api/test_npz.py",
        "formats/npz_pairs.py": "api/test_npz.py",
        "formats/zipped.py": "formats/test_npz.py",
        "formats/json_pairs.py": "formats/test_json.py",
        "client/errors.py": "client/test_refusals.py",
        "client/methods.py": "client/test_operations.py",
        "client/records.py": "client/calls/test_maps.py",  # and the others beside it
        "client/pages.py": "client/test_exchange.py",
        "client/requests.py": "client/test_exchange.py",
        "client/rows.py": "client/calls/test_vectors.py",
        "client/transformers/bars.py": "client/transformers/test_map_transformer.py",
        "client/transformers/connections.py": "client/transformers/test_fitting.py",
        "client/transformers/specs.py": "client/transformers/test_fitting.py",
        "jobs/checkpoints.py": "jobs/test_jobs.py",
        "jobs/draft.py": "jobs/test_jobs.py",
        "jobs/errors.py": "jobs/test_jobs.py",
        "jobs/prelude.py": "jobs/test_queue.py",
        "jobs/record.py": "jobs/test_jobs.py",
        "jobs/scripts.py": "jobs/test_queue.py",
        "services/left_open.py": "services/test_asked.py",
        "store/binary.py": "store/test_embedded.py",
        "store/errors.py": "store/test_connection.py",
        "store/map_manifest.py": "store/test_manifest.py",
        "store/lzf.py": "store/test_snapshot.py",
        "store/named.py": "store/test_maps.py",
        "store/named_reader.py": "store/test_maps.py",
        "store/pieces.py": "store/test_maps.py",
        "store/server.py": "store/test_supervision.py",
        "store/snapshot_walk.py": "store/test_snapshot.py",
    },
    "runs in a process of its own": {
        "__main__.py": "test_settings.py",
        "commands/accept_store.py": "store/test_identity.py",
        "commands/backup.py": "store/test_backup.py",
        "commands/bulk.py": "commands/test_transform.py",
        "commands/check.py": "store/test_data_files.py",
        "commands/asking.py": "commands/test_create.py",
        "commands/openapi.py": "test_openapi.py",
        "commands/options.py": "test_settings.py",
        "commands/repair.py": "store/test_data_files.py",
        "commands/restore.py": "store/test_backup.py",
        "commands/serve.py": "test_settings.py",  # and store/test_supervision.py
        "commands/wait.py": "commands/test_create.py",
        "commands/worker.py": "jobs/test_worker.py",
        "jobs/job_process.py": "jobs/test_worker.py",
        "parquet_process.py": "formats/test_parquet.py",
    },
}
"""Why a source file has no test file of its own, and where it is tested."""
LISTED = {source: place for group in ELSEWHERE.values() for source, place in group.items()}


def sources() -> list[str]:
    """Files of app/, and as client/ the client's, that do something: those that only declare have nothing to test."""
    found = []
    for root, prefix in ((APP, ""), (CLIENT, "client/")):
        files = [path for path in root.rglob("*.py") if path.name != "__init__.py"]
        found += [prefix + path.relative_to(root).as_posix() for path in files if does_something(path.read_text())]
    return sorted(found)


def is_source(path: str) -> bool:
    return (APP / path).is_file() or (CLIENT.parent / path.replace("client/", "bochner_client/", 1)).is_file()


def does_something(text: str) -> bool:
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) for node in ast.walk(ast.parse(text))
    )


def mirrored(source: str) -> str:
    folder, _, name = source.rpartition("/")
    return f"{folder}/test_{name}".lstrip("/")


@pytest.mark.parametrize("source", sources())
def test_each_source_has_its_test_file_or_a_reason(source: str) -> None:
    place = mirrored(source)
    if source in LISTED:
        assert (TESTS / LISTED[source]).is_file(), (
            f"{LISTED[source]} is gone: say in ELSEWHERE where {source} is tested"
        )
        assert not (TESTS / place).exists(), f"{source} has {place}: take it out of ELSEWHERE"
        return
    assert (TESTS / place).is_file(), (
        f"write service_tests/{place}, or say in ELSEWHERE where {source} is tested and why"
    )


def test_what_is_listed_is_there() -> None:
    gone = set(LISTED) - set(sources())
    assert not gone, f"take {sorted(gone)} out of ELSEWHERE: there are no such files, or they only declare"


@pytest.mark.parametrize("test", [path.relative_to(TESTS).as_posix() for path in sorted(TESTS.rglob("test_*.py"))])
def test_a_test_file_lies_beside_a_source_or_says_what_it_is_about(test: str) -> None:
    folder, _, name = test.rpartition("/")
    if not is_source(f"{folder}/{name.removeprefix('test_')}".lstrip("/")):
        docstring = ast.get_docstring(ast.parse((TESTS / test).read_text()))
        assert docstring, (
            f"move service_tests/{test} beside what it tests, or begin it with a docstring: what is it about?"
        )


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("X = 1", False),
        ('class A:\n    """Nothing."""\n    x: int', False),
        ("class A:\n    def f(self): ...", True),
        ("X = {'a': lambda: 1}", True),
    ],
)
def test_declarations_need_no_test(text: str, does: bool) -> None:
    assert does_something(text) == does
