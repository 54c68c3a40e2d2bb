"""OpenAPIFunctions does what every FunctionSource must, from a file and over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from portico_openapi.config import OpenAPISettings
from portico_openapi.functions import OpenAPIFunctions
from portico_testkit.function_source import FunctionSourceKit
from portico_testkit.package import PackageKit

LIBRARY = """\
openapi: 3.0.3
info: {title: A library, version: "1"}
servers: [{url: "https://library.example/v1"}]
paths:
  /books:
    get:
      operationId: list books
      parameters:
        - {name: author, in: query, schema: {type: string, nullable: true}}
        - {name: filter, in: query, style: deepObject, schema: {type: object, additionalProperties: {type: integer}}}
        - {name: pages, in: header, schema: {type: array, items: {type: integer}, minItems: 2, maxItems: 2}}
      responses:
        "200":
          description: Books
          content:
            application/json:
              schema: {type: array, items: {$ref: "#/components/schemas/Book"}}
    post:
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: "#/components/schemas/Book"}}}
      responses: {"204": {description: Done}}
  /books/{isbn}/cover:
    parameters: [{name: isbn, in: path, required: true, schema: {type: string, pattern: "^[0-9]+$"}}]
    put:
      summary: Set the cover
      requestBody:
        content:
          multipart/form-data:
            schema: {type: object, properties: {image: {type: string, format: binary}}}
      responses: {"200": {description: The cover, content: {image/png: {}}}}
components:
  schemas:
    Book:
      type: object
      required: [title]
      properties:
        title: {type: string}
        format: {enum: [paper, audio]}
        sequels: {type: array, items: {$ref: "#/components/schemas/Book"}}
        publisher: {anyOf: [{type: string}, {type: object, required: [name], properties: {name: {type: string}}}]}
"""


class TestAFile(FunctionSourceKit):
    @pytest.fixture
    def function_source(self, tmp_path: Path) -> OpenAPIFunctions:
        (tmp_path / "library.yaml").write_text(LIBRARY)
        return OpenAPIFunctions(OpenAPISettings(document=tmp_path / "library.yaml"))

    @pytest.fixture
    def unreadable_source(self, tmp_path: Path) -> OpenAPIFunctions:
        return OpenAPIFunctions(OpenAPISettings(document=tmp_path / "librry.yaml"))


class TestADocumentOverHttp(FunctionSourceKit):
    @pytest.fixture
    def function_source(self, httpserver: HTTPServer) -> OpenAPIFunctions:
        httpserver.expect_request("/openapi").respond_with_data(LIBRARY, content_type="application/yaml")
        return OpenAPIFunctions(OpenAPISettings(document=httpserver.url_for("/openapi")))

    @pytest.fixture
    def unreadable_source(self, httpserver: HTTPServer) -> OpenAPIFunctions:
        httpserver.expect_request("/openapi").respond_with_data(json.dumps({"swagger": "2.0"}))
        return OpenAPIFunctions(OpenAPISettings(document=httpserver.url_for("/openapi")))


class TestPackage(PackageKit):
    distribution = "portico-openapi"
