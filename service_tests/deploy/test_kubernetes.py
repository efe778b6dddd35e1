"""The resources of deploy/kubernetes: of valid form, with references that lead somewhere, and pods without rights."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

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


def test_a_resource_with_a_slip_is_refused() -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="brings the schemas: pip install kubernetes-validate")
    (deployment, *_) = of_kind(EVERYTHING, "Deployment")
    for slip in ({"replica": 1}, {"replicas": "1"}):
        with pytest.raises(validator.ValidationError):
            validator.validate(
                {**deployment, "spec": {**deployment["spec"], **slip}}, validator.latest_version(), strict=True
            )


def test_no_two_resources_have_one_name() -> None:
    names = [(resource["kind"], resource["metadata"]["name"]) for resource in EVERYTHING]
    assert len(names) == len(set(names))


def test_each_overlay_is_tried() -> None:
    assert {path.parent.name for path in KUBERNETES.glob("*/kustomization.yaml")} == set(OVERLAYS)


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


def test_the_autoscaler_scales_what_is_there_and_asks_for_processors() -> None:
    (scaler,) = of_kind(EVERYTHING, "HorizontalPodAutoscaler")
    target = scaler["spec"]["scaleTargetRef"]
    assert target["name"] in {one["metadata"]["name"] for one in of_kind(EVERYTHING, target["kind"])}
    (metric,) = scaler["spec"]["metrics"]
    assert metric["resource"]["name"] == "cpu"
    assert "cpu" in container(target["name"])["resources"]["requests"], "a share of what?"
    (scaled,) = (one for one in of_kind(EVERYTHING, "Deployment") if one["metadata"]["name"] == target["name"])
    assert "replicas" not in scaled["spec"], "each apply would undo what the autoscaler did"


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


@pytest.mark.parametrize("pod", PODS)
def test_clusters_set_no_setting_of_ours(pod: str) -> None:
    """A cluster tells pods of services in variables such as BOCHNER_PORT, unless told not to."""
    assert PODS[pod]["spec"]["enableServiceLinks"] is False


def settings() -> dict[str, str]:
    (found,) = of_kind(EVERYTHING, "ConfigMap")
    data: dict[str, str] = found["data"]
    return data


def test_settings_are_settings_and_fit_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {Settings.variable(field) for field in Settings.model_fields}
    assert settings().keys() <= known
    for variable, value in settings().items():
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


def seconds_to_end(pod: str) -> Any:
    return PODS[pod]["spec"]["terminationGracePeriodSeconds"]


def test_a_pod_has_time_to_end_in_order() -> None:
    before = int(container("api")["lifecycle"]["preStop"]["exec"]["command"][1])
    assert seconds_to_end("api") >= before + Settings().shutdown_timeout + 20
    assert seconds_to_end("worker") >= 30
    assert seconds_to_end("store") >= 30


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl here")
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kubectl_builds_the_same_resources(tmp_path: Path, overlay: str) -> None:
    copy = shutil.copytree(KUBERNETES, tmp_path / "kubernetes")
    secrets = copy / "with-store" / "secrets"
    secrets.mkdir(exist_ok=True)
    (secrets / "redis_url").write_text("redis://bochner:password@store:6379/0")
    ran = subprocess.run(["kubectl", "kustomize", str(copy / overlay)], capture_output=True, text=True, check=True)

    def named(resources: Iterable[Resource]) -> list[tuple[str, str]]:
        # Generated names end with a hash there.
        return sorted((one["kind"], re.sub("-[a-z0-9]{10}$", "", one["metadata"]["name"])) for one in resources)

    assert named(yaml.safe_load_all(ran.stdout)) == named(built(KUBERNETES / overlay))
