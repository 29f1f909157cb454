// @ts-check
/** A component that is drawn again only when one of its props changes. */

import { Component, h } from "../vendor/preact.js";

/** @template {object} P @param {(props: P) => any} draw @returns {(props: P & { key?: string }) => any} */
export function memo(draw) {
  class Kept extends Component {
    /** @param {Record<string, unknown>} next */
    shouldComponentUpdate(next) {
      const props = /** @type {Record<string, unknown>} */ (this.props);
      for (const name in next) if (next[name] !== props[name]) return true;
      for (const name in props) if (!(name in next)) return true;
      return false;
    }

    /** @param {any} props */
    render(props) {
      return h(/** @type {any} */ (draw), props);
    }
  }
  return /** @type {any} */ (Kept);
}
