/**
 * The URL of a worker's entry file beside the calling module: `.ts` when the sources run as they are, `.js` when built.
 * `moduleUrl` is the caller's import.meta.url, `name` the file's path from there without its ending.
 */
export function workerFile(moduleUrl: string, name: string): URL {
  const ending = moduleUrl.endsWith('.ts') ? '.ts' : '.js';
  return new URL(name + ending, moduleUrl);
}
