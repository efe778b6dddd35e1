"""The resources of deploy/kubernetes: of valid form, with references that lead somewhere, and pods without rights."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import Settings

Resource = dict[str, Any]
ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"
OVERLAYS = ("base", "with-store", "extras")
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
        if resource["kind"] not in ("Namespace", "PriorityClass") and "namespace" in kustomization:
            resource["metadata"]["namespace"] = kustomization["namespace"]
    return found


def of_kind(resources: list[Resource], *kinds: str) -> list[Resource]:
    """Those of some kinds."""
    return [resource for resource in resources if resource["kind"] in kinds]


def pods(resources: list[Resource]) -> dict[str, Resource]:
    """The templates of pods, by the name of what makes them."""
    makers = of_kind(resources, "Deployment", "StatefulSet", "CronJob")
    return {one["metadata"]["name"]: one["spec"].get("jobTemplate", one)["spec"]["template"] for one in makers}


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


MiB = 1 << 20
BUILT = {overlay: built(KUBERNETES / overlay) for overlay in OVERLAYS}
EVERYTHING = BUILT["with-store"]
PODS = pods(EVERYTHING)


def container(pod: str) -> Resource:
    """The only container of a pod."""
    (one,) = PODS[pod]["spec"]["containers"]
    found: Resource = one
    return found


def in_bytes(quantity: str) -> int:
    return int(quantity[:-2]) * {"Mi": MiB, "Gi": 1024 * MiB}[quantity[-2:]]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_cluster_takes_the_resources(overlay: str) -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="brings the schemas: pip install kubernetes-validate")
    version = validator.latest_version()
    for resource in BUILT[overlay]:
        if resource["kind"] == "PodMonitor":
            continue  # its schema comes with the operator of Prometheus
        validator.validate(resource, version, strict=True)


def test_the_store_is_reached_by_those_who_need_it_and_nobody_else() -> None:
    (policy,) = (one for one in of_kind(EVERYTHING, "NetworkPolicy") if one["metadata"]["name"] == "to-store")
    ((rule,), (peer,)) = policy["spec"]["ingress"], policy["spec"]["ingress"][0]["from"]
    assert chosen(peer["podSelector"], PODS) == {"api", "worker", "backup"}
    assert [port["port"] for port in rule["ports"]] == ["store"]
    # The secret that docker/secrets.sh writes names the store's service.
    assert "@store:6379" in (ROOT / "docker" / "secrets.sh").read_text()


@pytest.mark.parametrize("pod", PODS)
def test_what_a_pod_refers_to_is_there(pod: str) -> None:
    one = container(pod)
    for source in one.get("envFrom", []):
        assert source["configMapRef"]["name"] in {of["metadata"]["name"] for of in of_kind(EVERYTHING, "ConfigMap")}
    for variable in one["env"]:
        key = variable["valueFrom"]["secretKeyRef"]
        (secret,) = (of for of in of_kind(EVERYTHING, "Secret") if of["metadata"]["name"] == key["name"])
        assert key["key"] in secret["stringData"]
    ports = {port["name"]: port["containerPort"] for port in one.get("ports", [])}
    asked = [one[probe] for probe in ("startupProbe", "readinessProbe", "livenessProbe") if probe in one]
    named = [how["port"] for probe in asked for how in (probe.get("httpGet"), probe.get("tcpSocket")) if how]
    for service in of_kind(EVERYTHING, "Service"):
        if chosen({"matchLabels": service["spec"]["selector"]}, {pod: PODS[pod]}):
            named += [port["targetPort"] for port in service["spec"]["ports"]]
    assert set(named) <= ports.keys()
    volumes = {volume["name"] for volume in PODS[pod]["spec"]["volumes"]}
    claims = [claim for of in of_kind(EVERYTHING, "StatefulSet") for claim in of["spec"]["volumeClaimTemplates"]]
    assert {mount["name"] for mount in one["volumeMounts"]} <= volumes | {claim["metadata"]["name"] for claim in claims}


@pytest.mark.parametrize("pod", PODS)
def test_a_pod_has_no_rights(pod: str) -> None:
    """What the standard `restricted` asks for, which the namespace enforces, and a root that is read-only."""
    (namespace,) = of_kind(EVERYTHING, "Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    spec, one = PODS[pod]["spec"], container(pod)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    user = f"USER {spec['securityContext']['runAsUser']}:{spec['securityContext']['runAsGroup']}\n"
    assert user in (ROOT / "Dockerfile").read_text()
    assert one["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["automountServiceAccountToken"] is False
    assert {"cpu", "memory"} <= one["resources"]["requests"].keys()
    assert "memory" in one["resources"]["limits"]


def test_settings_are_settings_and_fit_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {Settings.variable(field) for field in Settings.model_fields}
    (found,) = of_kind(EVERYTHING, "ConfigMap")
    assert found["data"].keys() <= known
    for variable, value in found["data"].items():
        monkeypatch.setenv(variable, value)
    of = Settings()
    assert of.job_workers == 0, "workers have pods of their own"
    memory = {pod: in_bytes(container(pod)["resources"]["limits"]["memory"]) for pod in PODS}
    assert of.max_job_bytes + 512 * MiB <= memory["worker"]
    threads = int(container("api")["resources"]["limits"]["cpu"])
    shared = of.max_bodies_bytes + 2 * (of.cache_bytes + of.max_answers_bytes + of.max_map_bytes) + of.max_result_bytes
    assert shared + (threads + 1) * (of.max_build_bytes + of.max_result_bytes) <= memory["api"]
    assert 2 * of.max_store_bytes <= memory["store"]


def test_the_tags_are_the_version() -> None:
    """Of the changelog's newest section, as the release is made from it."""
    version = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert version is not None
    for overlay in ("base", "with-store"):
        assert f"newTag: {version[1]}\n" in (KUBERNETES / overlay / "kustomization.yaml").read_text()
