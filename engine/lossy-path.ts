/**
 * True for a path with U+FFFD, the replacement of bytes that are not UTF-8, or with an unpaired surrogate of
 * UTF-16. Node passes such a path to the system as a different name.
 */
export function isLossy(path: string): boolean {
  return path.includes('\uFFFD') || !path.isWellFormed();
}
