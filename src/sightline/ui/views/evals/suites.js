// @ts-check
/** The suites of the configured folder: write one, see what is wrong in which line, pick targets and run it. */

import { about } from "../../kit/about.js";
import { post } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { countOf } from "../../kit/core/format.js";
import { Dialog } from "../../kit/dialog.js";
import { Editor } from "../../kit/editor.js";
import { checkbox, textField } from "../../kit/fields.js";
import { go } from "../../kit/navigation.js";
import { toast } from "../../kit/toast.js";
import { h, html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { fileNamed } from "./core/case.js";
import { openSuite, useSuites, writeSuite } from "./feed.js";

/** @import { SuiteOpened, SuiteProblem, SuiteShown } from "../../api-types.d.ts" */
/** @typedef {{ message: string, hint?: string }} Refusal */
/** What is open: the list, a suite to edit (none is a new one), or one to run. */
/** @typedef {{ kind: "list" } | { kind: "edit", file: string } | { kind: "run", file: string }} Opened */

/** A text is checked so many milliseconds after the last key. */
const PAUSE = 400;
const FIRST = `tests:
  - id: capital
    criteria: Names the capital of France.
    input: What is the capital of France?
    assertions:
      - type: contains
        value: Paris
`;

/** @param {{ isFirst?: boolean, onClose: () => void }} props */
export function SuitesDialog({ isFirst = false, onClose }) {
  const [open, setOpen] = useState(/** @type {Opened} */ (isFirst ? { kind: "edit", file: "" } : { kind: "list" }));
  const toList = () => (isFirst ? onClose() : setOpen({ kind: "list" }));
  const run = (/** @type {string} */ file) => setOpen({ kind: "run", file });
  if (open.kind === "edit") return h(SuiteEditor, { key: open.file, file: open.file, onClose: toList, onRun: run });
  if (open.kind === "run") return h(RunDialog, { key: open.file, file: open.file, onClose: toList, onDone: onClose });
  return h(SuiteList, { onOpen: setOpen, onClose });
}

/** @param {{ onOpen: (opened: Opened) => void, onClose: () => void }} props */
function SuiteList({ onOpen, onClose }) {
  const { value, trouble } = useSuites();
  return h(Dialog, {
    title: "Suites",
    width: 720,
    onClose,
    children: html`${trouble ? html`<p class="refusal" role="alert">${trouble.message} ${trouble.hint}</p>` : null}
      ${!value && !trouble ? html`<p class="soft" role="status">Loading…</p>` : null}
      ${
        value &&
        (value.files.length
          ? html`<ul class="suite-list stacked wraps">
              ${value.files.map((suite) => h(SuiteLine, { key: suite.file, suite, onOpen }))}
            </ul>`
          : html`<p class="soft">There is no suite in <code>${value.folder || "."}</code> yet.</p>`)
      }`,
    footer: html`${button("Close", onClose)}
      ${button("New suite", () => onOpen({ kind: "edit", file: "" }), { kind: "primary", icon: "plus" })}`,
  });
}

/** @param {{ suite: SuiteShown, onOpen: (opened: Opened) => void, key?: string }} props */
function SuiteLine({ suite, onOpen }) {
  const wrong = suite.problems.filter((each) => (each.severity ?? "error") === "error");
  return html`<li class="in-row">
    <div class="suite-about">
      <b class="cut">${suite.name}</b>
      <p class="soft cut" title=${suite.file}>
        ${suite.cases === null ? "" : `${countOf(suite.cases, "case")} · `}<code>${suite.file}</code>
      </p>
      ${wrong.length ? html`<p class="bad">${problemLine(wrong[0])}</p>` : null}
    </div>
    ${button("Edit", () => onOpen({ kind: "edit", file: suite.file }), { name: `Edit ${suite.file}` })}
    ${button("Run…", () => onOpen({ kind: "run", file: suite.file }), {
      name: `Run ${suite.file}`,
      isDisabled: suite.cases === null,
    })}
  </li>`;
}

/** Where it is, what is wrong, and what to write instead. @param {SuiteProblem} problem */
function problemLine(problem) {
  const line = problem.place.line ? `Line ${problem.place.line}: ` : "";
  return `${line}${problem.message}${problem.suggestion ? `. ${problem.suggestion}` : ""}`;
}

/** @param {{ file: string, onClose: () => void, onRun: (file: string) => void, key?: string }} props */
function SuiteEditor({ file, onClose, onRun }) {
  const [suite, setSuite] = useState(/** @type {SuiteOpened | null} */ (null));
  const [name, setName] = useState("");
  const [text, setText] = useState(file ? "" : FIRST);
  const [problems, setProblems] = useState(/** @type {readonly SuiteProblem[]} */ ([]));
  const [cases, setCases] = useState(/** @type {number | null} */ (null));
  const [refusal, setRefusal] = useState(/** @type {Refusal | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const saving = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const latest = useRef(0);
  const place = file || fileNamed(name);
  useEffect(() => {
    if (!file) return;
    openSuite(file).then((found) => {
      setSuite(found);
      setText(found.yaml);
    }, setRefusal);
  }, []);
  useEffect(() => {
    if (file && !suite) return undefined;
    const own = (latest.current += 1);
    const timer = setTimeout(async () => {
      try {
        const checked = await writeSuite({ file: place || "new.yaml", yaml: text, dry: true });
        if (own !== latest.current) return;
        setProblems(checked.problems);
        setCases(checked.cases);
        setRefusal(null);
      } catch (error) {
        if (own === latest.current) setRefusal(/** @type {Refusal} */ (error));
      }
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [text, suite]);
  const save = async () => {
    setBusy(true);
    try {
      const saved = await writeSuite({ file: place, yaml: text, sha256: suite?.sha256 ?? "" });
      setProblems(saved.problems);
      setBusy(false);
      if (!saved.sha256) return;
      toast(`${saved.file} is saved.`, { hint: `In a terminal: sightline eval run ${saved.file}` });
      onRun(saved.file);
    } catch (error) {
      setRefusal(/** @type {Refusal} */ (error));
      setBusy(false);
    }
  };
  // Escape out of a text that was changed does not throw it away.
  const leave = () => (text === (suite?.yaml ?? FIRST) ? onClose() : saving.current?.focus());
  const errors = problems.filter((each) => (each.severity ?? "error") === "error");
  return h(Dialog, {
    title: file ? `Edit ${file}` : "New suite",
    class: "make-dialog",
    width: 820,
    isKept: true,
    onClose,
    footer: html`<span class="soft cut" role="status">
        ${
          errors.length
            ? countOf(errors.length, "problem")
            : !place
              ? "Name the file first."
              : cases === null
                ? ""
                : countOf(cases, "case")
        }
      </span>
      <span class="shell-gap"></span>
      ${button("Cancel", onClose)}
      ${button(isBusy ? "Saving…" : "Save and run…", () => void save(), {
        kind: "primary",
        isDisabled: !place || isBusy || errors.length > 0 || (file !== "" && !suite),
        ref: saving,
      })}`,
    children: html`${
      refusal ? html`<p class="refusal" role="alert">${refusal.message} ${refusal.hint ?? ""}</p>` : null
    }
      ${file ? null : h(FileNameField, { name, onName: setName })}
      <div class="make-editor">
        ${
          file && !suite
            ? html`<p class="soft pad" role="status">${refusal ? "" : "Loading…"}</p>`
            : h(Editor, { value: text, label: "The suite as YAML", language: "text", onChange: setText, onDone: leave })
        }
      </div>
      ${
        problems.length
          ? html`<ul class="suite-problems stacked wraps" aria-label="Problems">
              ${problems.map(
                (each, index) => html`<li
                  key=${index}
                  class=${(each.severity ?? "error") === "error" ? "bad" : "soft"}
                >
                  ${problemLine(each)}
                </li>`,
              )}
            </ul>`
          : null
      }`,
  });
}

/** @param {{ file: string, onClose: () => void, onDone: () => void, key?: string }} props */
export function RunDialog({ file, onClose, onDone }) {
  const [suite, setSuite] = useState(/** @type {SuiteOpened | null} */ (null));
  const [names, setNames] = useState(/** @type {readonly string[]} */ ([]));
  const [picked, setPicked] = useState(/** @type {readonly string[]} */ ([]));
  const [model, setModel] = useState("");
  const [trials, setTrials] = useState("");
  const [refusal, setRefusal] = useState(/** @type {Refusal | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    openSuite(file).then((found) => {
      setSuite(found);
      setNames([...new Set([...found.usual, ...found.targets])]);
      setPicked(found.usual);
    }, setRefusal);
  }, []);
  const toggle = (/** @type {string} */ name) =>
    setPicked((now) => (now.includes(name) ? now.filter((each) => each !== name) : [...now, name]));
  const add = () => {
    const name = model.trim();
    if (!name) return;
    setNames((now) => (now.includes(name) ? now : [...now, name]));
    setPicked((now) => (now.includes(name) ? now : [...now, name]));
    setModel("");
  };
  /** @param {Event} event */
  const start = async (event) => {
    event.preventDefault();
    if (model.trim()) return add();
    setBusy(true);
    try {
      const run = await post("/api/evals", { file, targets: picked, ...(trials && { trials: Number(trials) }) });
      onDone();
      go({ view: "eval", id: run.run });
    } catch (error) {
      setRefusal(/** @type {Refusal} */ (error));
      setBusy(false);
    }
    return undefined;
  };
  const known = about.value.models.map((each) => (each.provider ? `${each.provider}/${each.id}` : each.id));
  const warning = suite?.problems.find((each) => each.severity === "warning");
  return h(Dialog, {
    title: `Run ${file}`,
    class: "make-dialog",
    width: 820,
    isKept: true,
    onClose,
    children: html`<form id="run-suite" class="run-suite" onSubmit=${start}>
      ${refusal ? html`<p class="refusal" role="alert">${refusal.message} ${refusal.hint ?? ""}</p>` : null}
      ${suite ? null : html`<p class="soft" role="status">${refusal ? "" : "Loading…"}</p>`}
      ${warning ? html`<p class="soft">${problemLine(warning)}</p>` : null}
      <fieldset class="stacked">
        <legend class="soft">Targets</legend>
        ${names.map((name) => {
          const about =
            name === "default" ? html` <span class="faint">the model that is asked by default</span>` : null;
          return checkbox(html`${name}${about}`, picked.includes(name), () => toggle(name), { key: name });
        })}
        <div class="run-suite-add">
          ${textField(model, setModel, {
            label: "Add a model",
            kind: "mono",
            isCode: true,
            list: "run-suite-models",
            placeholder: "Add a model: openai/gpt-4o",
          })}
          <datalist id="run-suite-models">
            ${known.map((each) => html`<option key=${each} value=${each}></option>`)}
          </datalist>
          ${button("Add", add, { isDisabled: !model.trim() })}
        </div>
      </fieldset>
      <label class="edit-field run-suite-trials">
        <span class="soft">Trials of each case</span>
        ${textField(trials, setTrials, {
          kind: "number",
          type: "number",
          min: "1",
          max: "1000",
          placeholder: "from the suite",
        })}
      </label>
    </form>`,
    footer: html`<span class="soft" role="status">
        ${suite?.cases != null ? `${countOf(suite.cases, "case")} on ${countOf(picked.length, "target")}` : ""}
      </span>
      <span class="shell-gap"></span>
      ${button("Cancel", onClose)}
      <button
        type="submit"
        form="run-suite"
        class="button primary"
        disabled=${!suite || isBusy || (!picked.length && !model.trim())}
      >
        ${isBusy ? "Starting…" : "Run"}
      </button>`,
  });
}

/** The name of a suite that has no file yet. @param {{ name: string, onName: (name: string) => void }} props */
export function FileNameField({ name, onName }) {
  return html`<label class="edit-field">
    <span class="soft">Name of the file</span>
    ${textField(name, onName, { kind: "mono", isCode: true, placeholder: "support.yaml" })}
  </label>`;
}
