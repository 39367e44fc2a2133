"""The forms of a report: each says all that was found, and what a target said is text in
all of them.
"""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from stub_server.core.problem import UnusableInput
from stub_server.tools.verify import forms
from stub_server.tools.verify.findings import CLASSES, GROUPS, Finding, Said, Shown
from stub_server.tools.verify.forms import FORMS
from stub_server.tools.verify.outcome import known

from ..support.contract import OPENAPI
from .reports import HOSTILE, OVERLAY, finding, of_every_class, report

ORDERS = "#/paths/~1v2~1orders/get"
HOSTILE_OVERLAY = {"target": "$", "update": {HOSTILE: HOSTILE}}
HOSTILE_FINDING = finding(
    title=HOSTILE,
    tries=HOSTILE,
    request=Shown("POST", HOSTILE, f"curl '{HOSTILE}'"),
    target=Said(500, HOSTILE),
    expected=Said(0, HOSTILE),
)


def rendered(form: str, *findings: Finding, overlay: Any = None) -> str:
    return forms.rendered(FORMS[form], report=report(*findings, overlay=overlay))


def as_json(*findings: Finding, overlay: Any = None) -> Any:
    return json.loads(rendered("json", *findings, overlay=overlay))


def as_sarif(*findings: Finding) -> Any:
    return json.loads(rendered("sarif", *findings))["runs"][0]


def as_junit(*findings: Finding) -> ElementTree.Element:
    return ElementTree.fromstring(rendered("junit", *findings).encode())


@pytest.mark.parametrize("form", FORMS)
def test_a_form_shows_each_divergence_whole(form: str) -> None:
    text = rendered(form, *of_every_class(), finding("laxer", "listOrders", ORDERS, tries="null"))
    for fact in (
        "https://api.example.com",
        report().head["contract"],
        "curl -X POST https://api.example.com/v2/customers",
    ):
        assert fact in text or fact.replace("'", "&#39;") in text
    for kind in CLASSES:
        assert f"a {kind} divergence" in text
    assert form == "json" or "openapi/paths/orders.yaml" in text


@pytest.mark.parametrize("form", FORMS)
def test_what_a_target_says_is_text(form: str) -> None:
    text = rendered(form, HOSTILE_FINDING, overlay=HOSTILE_OVERLAY)
    assert [] == [sign for sign in text if not sign.isprintable() and sign != "\n"]
    assert "forged" in text
    text.encode()


def test_text_counts_the_classes_first_and_shows_five_lines_of_each() -> None:
    found = [finding(), finding("laxer", "listOrders", "", target=Said(0, ""))]
    blocks = [each.splitlines() for each in rendered("text", *found, overlay=OVERLAY).split("\n\n")]
    classes, first, second, matrix, reach, left, last = blocks[1:]
    assert [["1", "stricter"], ["1", "laxer"]] == [line.split()[:2] for line in classes]
    assert [*GROUPS] == matrix[0].split()
    assert ["createCustomer", "✗", "✓", "✗", "✓"] == matrix[1].split()
    facts = ("createCustomer", "curl", "422", "(assumed)", "--write-overlay")
    assert all(fact in line for line, fact in zip(first, facts, strict=True))
    assert "no answer" in second[2]
    assert ["2", "needs", "--charges"] == reach[1].split()
    assert "1 of /v2/projects" in left[0]
    assert "2 divergences" in last[0]


def test_json_has_its_shape() -> None:
    found = as_json(finding(), overlay=OVERLAY)
    [divergence], rows = found.pop("divergences"), found.pop("operations")
    ends = {"seconds": 12.25, "requests": 321, "exit": 1, "tag": "verify-0a1b2c"}
    lists = {"unreached": report().coverage.unreached, "left_behind": [*report().left_behind]}
    assert report().head | ends | lists == found
    assert {"operationId", *GROUPS} == {*rows[0]}
    told = "fingerprint class operationId operations title basis pointer count request target"
    assert {*told.split(), "expected", "overlay"} == {*divergence}
    assert {"status": 422, "excerpt": '{"error":true}'} == divergence["target"]
    assert HOSTILE == as_json(HOSTILE_FINDING)["divergences"][0]["title"]


def test_html_is_one_page_without_script_and_without_other_files() -> None:
    text = rendered("html", HOSTILE_FINDING, overlay=HOSTILE_OVERLAY)
    assert [] == [
        sign for sign in ("<script", "<link", "<img", "<a ", "url(", "src=") if sign in text
    ]
    assert "&lt;script&gt;alert(1)&lt;/script&gt; ]]&gt; &amp;amp; {0}" in text
    assert "prefers-color-scheme: dark" in text


def test_junit_has_a_case_for_each_operation_and_group() -> None:
    [suite] = as_junit(finding(), finding("transport", "", ""))
    ends = {}
    for case in suite.iter("testcase"):
        ends[case.get("classname"), case.get("name")] = [each.tag for each in case]
    assert 3 * len(GROUPS) == len(ends) == int(suite.get("tests", ""))
    assert ("2", "3") == (suite.get("failures"), suite.get("skipped"))
    assert ["failure"] == ends["createCustomer", "accepts"] == ends["the whole backend", "accepts"]
    assert [] == ends["createCustomer", "rejects"]
    assert ["skipped"] == ends["createCustomer", "transitions"] == ends["listOrders", "filters"]


def test_sarif_points_into_the_contract() -> None:
    run = as_sarif(finding("schema", "listOrders", "#/components/schemas/Nobody"))
    [result] = run["results"]
    rules = run["tool"]["driver"]["rules"]
    assert list(CLASSES) == [rule["id"] for rule in rules]
    assert result["ruleId"] == rules[result["ruleIndex"]]["id"] == "schema"
    place = result["locations"][0]["physicalLocation"]
    lines = (OPENAPI.parent / place["artifactLocation"]["uri"]).read_text().splitlines()
    assert 0 < place["region"]["startLine"] <= len(lines)
    for each in as_sarif(*of_every_class())["results"]:
        is_certain = CLASSES[each["ruleId"]].get("certain", False)
        is_error = is_certain or each["properties"]["basis"] == "documented"
        assert ("error" if is_error else "warning") == each["level"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", "{", '{"divergences": 1}', '{"divergences": [1]}', '{"divergences": [{}]}',
     '{"divergences": [{"fingerprint": []}]}', "[" * 100_000, "\xff"],
)  # fmt: skip
def test_a_baseline_that_is_no_report_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "before.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(UnusableInput) as refused:
        known(file)
    assert str(file) in str(refused.value)
