import type { Ended } from './commands.ts';

/** The end that is allowed to a command that was attacked. */
export interface AllowedEnd {
  /** Exit codes of an error. */
  readonly codes: readonly number[];
  /** The error contains one of these paths or addresses. */
  readonly names: readonly string[];
  /** True where the command must not fail. */
  readonly mustSucceed: boolean;
}

/** The fault in the end of a command; undefined if it succeeded or failed as it should. */
export function wrongEnd(
  { code, signal, stderr, hung }: Ended,
  { codes, names, mustSucceed }: AllowedEnd,
): string | undefined {
  const said = `: ${stderr.trim()}`;
  if (hung) return 'hangs';
  if (signal !== null || code === null) return `is ended by ${signal}${said}`;
  if (code === 0) return undefined;
  if (mustSucceed) return `fails with ${code}${said}`;
  if (!codes.includes(code)) return `ends with ${code}${said}`;
  if (/this is a bug|internal error|^\s+at .*:\d+/im.test(stderr)) return `ends with a stack${said}`;
  if (!names.some((name) => stderr.includes(name))) return `names none of ${names.join(', ')}${said}`;
  // A spilled file is temporary itself.
  return /\.(?<!factorflow-spill\.)(tmp|old)-/.test(stderr) ? `names a temporary${said}` : undefined;
}
