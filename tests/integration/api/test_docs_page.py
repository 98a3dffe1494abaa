"""The page of the API's operations, which loads only files that the API itself serves."""

from __future__ import annotations

import json
import re
from typing import Any

from django.test import Client

from apps.api.api import PATH
from apps.api.docs_page import FILES

#: A name that identifies a format and is never loaded.
_NAMESPACE = "http://www.w3.org/2000/svg"


def get(path: str) -> Any:
    return Client().get(path)


def test_the_page_loads_only_files_of_the_api() -> None:
    page = get(f"{PATH}/docs")
    text = page.content.decode()
    loaded = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert page.status_code == 200
    assert {path.removeprefix(f"{PATH}/docs/") for path in loaded} == {*FILES, f"{PATH}/openapi.json"}
    assert [get(path).status_code for path in loaded] == [200] * len(loaded)
    found = re.search(r'id="swagger-settings">(.*?)</script>', text)
    assert found
    settings = json.loads(found[1])
    assert (settings["url"], settings["validatorUrl"]) == (f"{PATH}/openapi.json", None)


def test_the_page_names_no_external_address() -> None:
    assert "//" not in get(f"{PATH}/docs").content.decode()
    style = get(f"{PATH}/docs/swagger-ui.css").content.decode()
    assert set(re.findall(r"https?://[\w./-]*\w", style)) == {_NAMESPACE}
    assert {address[:5] for address in re.findall(r"url\([\"']?([^)]{5})", style)} == {"data:"}
    assert "@import" not in style


def test_the_policy_of_the_page_allows_no_inline_script() -> None:
    page = get(f"{PATH}/docs")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert re.search(r"https?:", policy) is None
    scripts = re.findall(r"<script[^>]*>", page.content.decode())
    assert all('src="' in script or 'type="application/json"' in script for script in scripts)


def test_other_files_of_the_package_are_not_served() -> None:
    for name in ("redoc.standalone.js", "swagger-ui-bundle.js.map", "..", "%2e%2e%2f__init__.py"):
        assert get(f"{PATH}/docs/{name}").status_code == 404, name


def test_a_known_file_is_not_sent_again() -> None:
    tag = get(f"{PATH}/docs/swagger-ui.css").headers["ETag"]
    response = Client().get(f"{PATH}/docs/swagger-ui.css", headers={"If-None-Match": tag})
    assert (response.status_code, response.content) == (304, b"")
