"""A validator for the subset of JSON Schema that /openapi.json uses: $ref, type, enum, const,
properties, required, additionalProperties, items, anyOf, oneOf, bounds."""
import re
import urllib.parse

KNOWN = {"$ref", "type", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "minimum", "maximum", "multipleOf",
         "minLength", "maxLength", "x-maxBytes", "pattern", "minItems", "maxItems", "format", "description", "example", "contentEncoding"}

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "null": lambda v: v is None,
}


def types_of(schema):
    """The types that it names."""
    types = schema.get("type", [])
    return types if isinstance(types, list) else [types]


class Wrong(Exception):
    pass


class Document:
    def __init__(self, root):
        self.root = root

    def at(self, ref):
        """What a $ref means."""
        if not ref.startswith("#/"):
            raise Wrong(f"not a reference within the document: {ref}")
        node = self.root
        for part in ref[2:].split("/"):
            part = urllib.parse.unquote(part).replace("~1", "/").replace("~0", "~")
            if part not in node:
                raise Wrong(f"{ref} is not there")
            node = node[part]
        return node

    def follow(self, node):
        while "$ref" in node:
            node = self.at(node["$ref"])
        return node

    def check(self, schema, value, where="answer", strict=False):
        """Wrong if the value does not fit. strict: nothing that the schema does not name, even if it allows more."""
        unknown = set(schema) - KNOWN
        if unknown:
            raise Wrong(f"{where}: the schema has {unknown}")
        if "$ref" in schema:
            self.check(self.at(schema["$ref"]), value, where, strict)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                self._one_of(schema[word], value, where, strict, only=word == "oneOf")
        if "const" in schema and (value != schema["const"] or isinstance(value, bool) != isinstance(schema["const"], bool)):
            raise Wrong(f"{where}: {value!r} is not {schema['const']!r}")
        if "enum" in schema and value not in schema["enum"]:
            raise Wrong(f"{where}: {value!r} is none of {schema['enum']}")
        if "type" in schema:
            types = types_of(schema)
            if not any(TYPES[name](value) for name in types):
                raise Wrong(f"{where}: {value!r} is no {' or '.join(types)}")
        if isinstance(value, int) and not isinstance(value, bool):
            steps = value / schema.get("multipleOf", 1) if "multipleOf" in schema else 0
            if abs(steps - round(steps)) > 1e-6:
                raise Wrong(f"{where}: {value!r} is no multiple of {schema['multipleOf']}")
            if value < schema.get("minimum", value) or value > schema.get("maximum", value):
                raise Wrong(f"{where}: {value} is out of bounds")
        if isinstance(value, float) and "multipleOf" in schema:
            times = value / schema["multipleOf"]  # as near as doubles come
            if abs(times - round(times)) > 1e-9 * max(abs(times), 1000):
                raise Wrong(f"{where}: {value} is no multiple of {schema['multipleOf']}")
        if isinstance(value, str) and not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            raise Wrong(f"{where}: a string of {len(value)}")
        if isinstance(value, str) and len(value.encode()) > schema.get("x-maxBytes", 2 ** 60):
            raise Wrong(f"{where}: {len(value.encode())} bytes")
        if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
            raise Wrong(f"{where}: {value!r} does not match {schema['pattern']}")
        if isinstance(value, list):
            if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
                raise Wrong(f"{where}: {len(value)} items")
            for i, item in enumerate(value):
                self.check(schema.get("items", {}), item, f"{where}[{i}]", strict)
        if isinstance(value, dict):
            self._object(schema, value, where, strict)

    def _object(self, schema, value, where, strict):
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                raise Wrong(f"{where}: '{name}' is missing")
        for name, member in value.items():
            if name in properties:
                self.check(properties[name], member, f"{where}.{name}", strict)
            elif isinstance(schema.get("additionalProperties"), dict):
                self.check(schema["additionalProperties"], member, f"{where}.{name}", strict)
            elif schema.get("additionalProperties", True) is False or (strict and properties):
                raise Wrong(f"{where}: '{name}' is not in the schema")

    def _one_of(self, schemas, value, where, strict, only):
        fits, reasons = 0, []
        for schema in schemas:
            try:
                self.check(schema, value, where, strict)
                fits += 1
            except Wrong as why:
                reasons.append(str(why))
        if fits == 0 or (only and fits != 1):
            raise Wrong(f"{where}: fits {fits} of {len(schemas)}: " + "; ".join(reasons[:4]))

    def operations(self):
        """(method, path, operation) of every route; the same below another path is left out."""
        for path, methods in self.root["paths"].items():
            if "$ref" in methods:
                continue
            for method, operation in methods.items():
                yield method.upper(), path, operation

    def check_answer(self, operation, answer):
        """Does an answer (of lib.py) fit what the operation says?"""
        responses = operation["responses"]
        response = self.follow(responses.get(str(answer.status), responses["default"]))
        if answer.status < 400 and str(answer.status) not in responses:
            raise Wrong(f"{operation['operationId']}: {answer.status} is not described")
        content = response["content"]
        kind = answer.headers["Content-Type"].split(";")[0]
        if kind not in content:
            raise Wrong(f"{operation['operationId']}: {kind} is not described")
        if kind == "application/json":
            self.check(content[kind]["schema"], answer.json, operation["operationId"], strict=True)

    def check_body(self, operation, body):
        self.check(operation["requestBody"]["content"]["application/json"]["schema"], body, operation["operationId"] + " (body)")
