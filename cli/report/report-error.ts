import { errorCode, fileProblem, permissionProblem } from '../../connectors/files/file-problem.ts';
import {
  CapacityError,
  DataError,
  type ErrorCode,
  type ExitCode,
  FactorFlowError,
  publicText,
  UsageError,
} from '../../engine/errors.ts';
import { onOneLine } from '../../engine/format.ts';
import type { Options } from '../options/option.ts';
import { bugsUrl, packageInfo } from '../../api/package-info.ts';
import { nameFlags } from './name-flags.ts';

export interface ErrorReport {
  /** The message for --json. */
  readonly message: string;
  /** The text for stderr. */
  readonly text: string;
  readonly code: ErrorCode | 'INTERNAL';
  readonly exitCode: ExitCode;
}

/**
 * The report of a failure, in the flags of the command: an error of the library without a stack trace,
 * anything else as a bug with one.
 */
export function reportError(thrown: unknown, options: Options = {}): ErrorReport {
  const error = classify(thrown);
  if (error instanceof FactorFlowError) {
    const { summary, details } = error;
    const advice =
      details.advice === undefined ? undefined : nameFlags(columnAdvice(details.advice, options), options);
    // The file and row are added separately, so that no name in them is replaced.
    const { message } = new UsageError(nameFlags(summary, options), { ...details, advice });
    return { message, text: `factorflow: ${onOneLine(message)}`, code: error.code, exitCode: error.exitCode };
  }
  const { version } = packageInfo();
  const message = publicText(error instanceof Error ? error.message : String(error));
  const stack = error instanceof Error ? publicText(error.stack ?? message) : message;
  const machine = `factorflow ${version}, node ${process.version}, ${process.platform} ${process.arch}`;
  const text = `factorflow: internal error: ${stack}\n\nThis is a bug in FactorFlow (${machine}). Please report it with the command line and the lines above:\n${bugsUrl()}`;
  return { message: `internal error: ${message}`, text, code: 'INTERNAL', exitCode: 1 };
}

/** Advice on columns, for commands that lack some of these flags. */
function columnAdvice(advice: string, options: Options): string {
  const names = ['userCol', 'itemCol', 'ratingCol', 'timestampCol'].filter((name) => name in options);
  if (names.length === 0) return advice;
  return advice.replace(
    'userCol, itemCol, ratingCol and timestampCol',
    `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`,
  );
}

/** Turns errors of the system and of the JavaScript engine into errors of the library. */
function classify(error: unknown): unknown {
  if (error instanceof FactorFlowError || !(error instanceof Error)) return error;
  const refused = permissionProblem(error);
  if (refused !== undefined) return refused;
  if (isOutOfMemory(error)) {
    return new CapacityError(`out of memory: ${error.message}`, {
      advice:
        'Use a lower rank or fewer ratings, close other programs, or bound the run with --memory-budget',
      cause: error,
    });
  }
  if (/\bE[MN]FILE\b|too many open files/.test(error.message))
    return new CapacityError('too many open files', { advice: 'Raise the limit (ulimit -n)', cause: error });
  return classifySystem(error);
}

/** Turns a system error into an error of the library, with its file if the system names it. */
function classifySystem(error: Error): Error {
  const path = 'path' in error && typeof error.path === 'string' ? error.path : undefined;
  const code = errorCode(error);
  if (code === 'ENOSPC')
    return new CapacityError('the disk is full', { file: path, advice: 'Free some space', cause: error });
  const syscall = 'syscall' in error ? String(error.syscall) : '';
  if (path === undefined) {
    // These two codes result from wrong calls in the program.
    const isBug = syscall === '' || code === undefined || ['EBADF', 'EINVAL'].includes(code);
    return isBug ? error : new DataError(`the system refuses: ${error.message}`, { cause: error });
  }
  const writes = /^(mkdir|mkdtemp|write|rename|unlink|rm|rmdir|ftruncate|fsync)/.test(syscall);
  const problem = fileProblem(error, writes ? 'write' : 'read', path);
  return problem instanceof FactorFlowError && problem.exitCode === 2
    ? new DataError(problem.summary, problem.details)
    : problem;
}

function isOutOfMemory(error: Error): boolean {
  if (errorCode(error) === 'ERR_WORKER_OUT_OF_MEMORY') return true;
  return (
    error instanceof RangeError &&
    /allocation failed|Invalid (typed )?array( buffer)? length|could not allocate memory|Maximum size|Cannot create a (string|Buffer)/i.test(
      error.message,
    )
  );
}
