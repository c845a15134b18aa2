import { UsageError } from '../errors.ts';
/**
 * The URL of a worker's entry file: `.ts` if the sources run unbuilt, `.js` if built. Callers write
 * `workerFile(new URL('./worker.js', import.meta.url))`: tools that copy a package's files without running it
 * find the file in that form.
 */
export function workerFile(built: URL): URL {
  return import.meta.url.endsWith('.ts') ? new URL(built.href.replace(/js$/, 'ts')) : built;
}

/** The error for a thread that could not load one of its modules; undefined for other causes. */
export function missingFile(cause: unknown): UsageError | undefined {
  const { code, message } = (cause ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') return undefined;
  const [summary] = String(message).split('\n');
  return new UsageError(`a thread cannot start: ${summary}`, {
    advice: 'The installed package is incomplete: install it again',
    cause,
  });
}
