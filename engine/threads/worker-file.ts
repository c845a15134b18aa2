/**
 * The URL of a worker's entry file: `.ts` if the sources run unbuilt, `.js` if built. Callers write
 * `workerFile(new URL('./worker.js', import.meta.url))`: tools that copy a package's files without running it
 * find the file in that form.
 */
export function workerFile(built: URL): URL {
  return import.meta.url.endsWith('.ts') ? new URL(built.href.replace(/js$/, 'ts')) : built;
}
