"""Claims about the QR images."""

from xml.etree import ElementTree

import pytest

from stub_server.domain import brcode
from stub_server.domain.brcode import drawn

CODE = brcode.encode(4990, "9d36b84fc70b478fb95c12729b90ca25", "Academia Viva", "São Paulo")


def test_the_svg_is_a_square_document() -> None:
    root = ElementTree.fromstring(drawn(CODE, "svg"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.attrib["width"] == root.attrib["height"]


def test_the_png_is_a_png() -> None:
    image = drawn(CODE, "png")
    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    assert image[16:20] == image[20:24]


@pytest.mark.parametrize("form", ["svg", "png"])
def test_the_same_code_gives_the_same_bytes_and_another_code_others(form: str) -> None:
    assert drawn(CODE, form) == drawn(CODE, form)
    assert drawn(CODE, form) != drawn(CODE + "0", form)


def test_the_longest_br_code_still_fits() -> None:
    assert ElementTree.fromstring(drawn("~" * 512, "svg")).attrib["width"]
    assert drawn("~" * 512, "png").endswith(b"IEND\xaeB`\x82")
