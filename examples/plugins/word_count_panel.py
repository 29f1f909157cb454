"""A panel: a tab on the page of an exchange that counts the words of each section.

[plugins]
use = ["word_count_panel.py"]
"""

from sightline.plugins import Panel, Plugin

MODULE = """
export default function show(element, exchange, sightline) {
  const table = document.createElement("table");
  for (const section of exchange.sections ?? []) {
    const words = section.text.split(/\\s+/).filter(Boolean).length;
    const row = table.insertRow();
    row.insertCell().textContent = section.kind;
    row.insertCell().textContent = `${words} words`;
  }
  element.append(table);
}
"""

PLUGIN = Plugin(name="word-count", panels={"word-count": Panel(title="Words", module=MODULE)})
