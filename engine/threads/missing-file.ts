import { UsageError } from '../errors.ts';

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
