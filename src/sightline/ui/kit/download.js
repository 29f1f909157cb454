// @ts-check
/** Files that the page gives to the browser to save. */

/** @param {Blob} blob @param {string} name */
export function saveBlob(blob, name) {
  const address = URL.createObjectURL(blob);
  download(address, name);
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/**
 * Save what is at an address; without a name, under the one that the server gives.
 * @param {string} address
 * @param {string} [name]
 */
export function download(address, name = "") {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}
