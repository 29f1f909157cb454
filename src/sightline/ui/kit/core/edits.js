// @ts-check
/** Edits that were typed and not yet sent: they are sent in order, one at a time, and a burst of keys as one. */

/** @typedef {Record<string, unknown> & { op: string }} Operation */
/** @typedef {{ section: string, part?: string }} Target */
/**
 * @typedef {object} Wiring
 * @property {(operation: Operation) => Promise<any>} post
 * @property {(answer: any, operation: Operation) => void} answered
 * @property {(error: Error, operation: Operation) => void} refused
 * @property {(busy: boolean) => void} [busy]
 * @property {(run: () => void, after: number) => () => void} [later]
 */

/** An edit is sent so many milliseconds after the last key. */
export const PAUSE = 250;
/** While the user types without a pause, an edit is sent at least this often. */
const LONGEST = 1500;

/** @param {Target} target */
export function nameOf(target) {
  return target.part ?? target.section;
}

/**
 * What was typed into a plain text field, with the line ends that the text had before: a field makes `\n` of them all,
 * even if nothing was typed.
 * @param {string} typed
 * @param {string} before
 */
export function withLineEnds(typed, before) {
  if (typed === before.replace(/\r\n?/g, "\n")) return before;
  const hasOnlyPairs = before.includes("\r\n") && !/\r(?!\n)|(?<!\r)\n/.test(before);
  return hasOnlyPairs ? typed.replaceAll("\n", "\r\n") : typed;
}

export class Edits {
  /** @param {Wiring} wiring */
  constructor(wiring) {
    this._wiring = wiring;
    this._later =
      wiring.later ??
      ((run, after) => {
        const timer = setTimeout(run, after);
        return () => clearTimeout(timer);
      });
    /** @type {Map<string, { target: Target, text: string }>} */
    this._typed = new Map();
    /** @type {Promise<boolean>} */
    this._told = Promise.resolve(true);
    this._count = 0;
    /** @type {(() => void) | null} */
    this._stop = null;
    /** @type {(() => void) | null} */
    this._stopLongest = null;
  }

  /** Whether anything is typed or on its way. */
  get isBusy() {
    return this._typed.size > 0 || this._count > 0;
  }

  /** The text of a target that the server does not know yet. @param {string} name */
  typed(name) {
    return this._typed.get(name)?.text;
  }

  /** @param {Target} target @param {string} text */
  type(target, text) {
    this._typed.set(nameOf(target), { target, text });
    this._stop?.();
    this._stop = this._later(() => void this.flush(), PAUSE);
    this._stopLongest ??= this._later(() => void this.flush(), LONGEST);
    this._wiring.busy?.(true);
  }

  /**
   * Tell all that was typed; resolves when the server has answered everything, with whether it took it all.
   * @returns {Promise<boolean>}
   */
  flush() {
    this._stop?.();
    this._stopLongest?.();
    this._stop = this._stopLongest = null;
    const typed = [...this._typed.values()];
    this._typed.clear();
    for (const { target, text } of typed) {
      const named = target.part ? { section: target.section, part: target.part } : { section: target.section };
      this._tell({ op: "set_text", ...named, text });
    }
    return this._told;
  }

  /**
   * An operation after everything that was typed before it.
   * @param {Operation} operation
   * @returns {Promise<boolean>}
   */
  apply(operation) {
    void this.flush();
    return this._tell(operation);
  }

  /** Forget what was typed of one target. @param {string} name */
  forget(name) {
    this._typed.delete(name);
    if (!this._typed.size) {
      this._stop?.();
      this._stopLongest?.();
      this._stop = this._stopLongest = null;
    }
    this._wiring.busy?.(this.isBusy);
  }

  /** @param {Operation} operation @returns {Promise<boolean>} */
  _tell(operation) {
    this._count++;
    this._wiring.busy?.(true);
    const before = this._told;
    const own = (async () => {
      const wasTaken = await before;
      try {
        this._wiring.answered(await this._wiring.post(operation), operation);
        return wasTaken;
      } catch (error) {
        this._wiring.refused(/** @type {Error} */ (error), operation);
        return false;
      } finally {
        this._count--;
        if (!this._count) this._told = Promise.resolve(true);
        this._wiring.busy?.(this.isBusy);
      }
    })();
    this._told = own;
    return own;
  }
}
