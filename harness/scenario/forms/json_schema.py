"""Write the scenario file's JSON Schema, which is published for editors as examples/scenarios/schema.json.

An editor checks a YAML file that begins with `# yaml-language-server: $schema=schema.json` while a user writes it. The
schema says what may stand where. parse_scenario finds what only the whole shows, such as a member that never starts.

    python -m rebalance_lab.harness.scenario.forms.json_schema        # writes the published file anew
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rebalance_lab.harness.scenario.forms.event_forms import KINDS, alias
from rebalance_lab.harness.scenario.forms.scenario_form import ScenarioForm
from rebalance_lab.harness.scenario.forms.value_schemas import given

PUBLISHED = Path(__file__).resolve().parents[3] / "examples" / "scenarios" / "schema.json"


def scenario_schema() -> dict[str, Any]:
    schema: dict[str, Any] = tidied(ScenarioForm.model_json_schema(by_alias=True))
    event = schema["$defs"]["EventForm"]
    event["oneOf"] = [given(alias(kind)) for kind in KINDS]
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Rebalance Lab scenario"
    return schema


def tidied(value: Any) -> Any:
    """Remove what pydantic adds: titles made of names, and defaults in milliseconds."""
    if isinstance(value, list):
        return [tidied(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: tidied(one) for key, one in value.items() if not (key == "default" or key == "title")}
    # A property may have any name, also one of those.
    if isinstance(value.get("properties"), dict):
        kept["properties"] = {name: tidied(one) for name, one in value["properties"].items()}
    return kept


def schema_text() -> str:
    return json.dumps(scenario_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PUBLISHED.parent.mkdir(parents=True, exist_ok=True)
    PUBLISHED.write_text(schema_text())
