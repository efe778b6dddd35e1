"""The resources of deploy/kubernetes: of valid form, with references that lead somewhere, and pods without rights."""

import re

import pytest

from app.settings import Settings
from service_tests.deploy.manifests import KUBERNETES, OVERLAYS, ROOT, Resource, built, chosen, of_kind, pods

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
        validator.validate(resource, version, strict=True)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "PodDisruptionBudget", "NetworkPolicy", "Service"])
def test_selectors_take_the_pods_they_are_for(kind: str) -> None:
    wanted = {"to-the-store": {"api", "worker"}, "nothing-else": {"api", "worker", "store"}}
    wanted |= {"to-api": {"api"}, "to-store": {"store"}}
    for resource in of_kind(EVERYTHING, kind):
        name, spec = resource["metadata"]["name"], resource["spec"]
        selector = (
            {"matchLabels": spec["selector"]} if kind == "Service" else spec.get("selector") or spec["podSelector"]
        )
        assert chosen(selector, PODS) == wanted.get(name, {name})


def test_the_store_is_reached_by_those_who_need_it_and_nobody_else() -> None:
    (policy,) = (one for one in of_kind(EVERYTHING, "NetworkPolicy") if one["metadata"]["name"] == "to-store")
    ((rule,), (peer,)) = policy["spec"]["ingress"], policy["spec"]["ingress"][0]["from"]
    assert chosen(peer["podSelector"], PODS) == {"api", "worker"}
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
    assert of.cache_bytes + of.max_map_bytes + 512 * MiB <= memory["api"]


def test_the_tags_are_the_version() -> None:
    """Of the changelog's newest section, as the release is made from it."""
    version = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert version is not None
    for overlay in OVERLAYS:
        assert f"newTag: {version[1]}\n" in (KUBERNETES / overlay / "kustomization.yaml").read_text()
