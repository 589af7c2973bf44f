// Hands something to the browser as a file; nothing leaves the machine.

const KEPT_MS = 1000; // until the browser has begun to read it

/** Offer `blob` as a download of that name. */
export function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}
