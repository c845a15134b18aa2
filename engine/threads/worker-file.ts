/**
 * The URL of a worker's entry file: `.ts` when the sources run as they are, `.js` when built. Callers write
 * `workerFile(new URL('./worker.js', import.meta.url))`: in that form programs that copy a package's files,
 * without running it, find the file.
 */
export function workerFile(built: URL): URL {
  return import.meta.url.endsWith('.ts') ? new URL(built.href.replace(/\.js$/, '.ts')) : built;
}
