/** Whether a path names a file on a web server. */
export function isUrl(path: string): boolean {
  return /^https?:\/\//i.test(path);
}
