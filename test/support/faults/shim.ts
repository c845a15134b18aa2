import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

const source = join(import.meta.dirname, 'shim.c');
const folder = resolve(import.meta.dirname, '../../../build/torture');
const compilers = ['cc', 'gcc', 'clang'];

/** Groups of calls that the shim knows (see shim.c). */
export const calls = ['open', 'read', 'write', 'sync', 'truncate', 'rename', 'close'] as const;

/** The calls that are changed, and their change (see shim.c). */
export interface Fault {
  readonly call: (typeof calls)[number] | 'any';
  readonly first: number;
  /** 0: all that follow. */
  readonly times: number;
  readonly action: string;
}

/** A call that was changed. */
export interface ChangedCall {
  readonly call: string;
  readonly path: string;
}

/** Builds the shim. Gives its file, or the reason why there is none. */
export function buildShim(): { readonly file: string } | { readonly reason: string } {
  if (process.platform !== 'linux') return { reason: 'the shim is for Linux' };
  mkdirSync(folder, { recursive: true });
  // Its own name, so that runs at the same time don't meet.
  const file = join(folder, `shim-${process.pid}.so`);
  for (const compiler of compilers) {
    const flags = ['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC', '-O2'];
    const { error, status, stderr } = spawnSync(compiler, [...flags, '-o', file, source, '-ldl'], {
      encoding: 'utf8',
    });
    if (error !== undefined) continue;
    return status === 0 ? { file } : { reason: `${compiler} does not build the shim: ${stderr}` };
  }
  return { reason: `there is no C compiler (${compilers.join(', ')})` };
}

/** The environment of a command whose calls below `below` are changed, and `read` for the changed calls. */
export function faultyEnv(shim: string, below: string, { call, first, times, action }: Fault, log: string) {
  rmSync(log, { force: true });
  const env = {
    LD_PRELOAD: shim,
    // Requests of io_uring are no calls of the C library.
    UV_USE_IO_URING: '0',
    FACTORFLOW_FAULT_FOLDER: realpathSync(below),
    FACTORFLOW_FAULT_PLAN: `${call}:${first}:${times}:${action}`,
    FACTORFLOW_FAULT_LOG: log,
  };
  const read = (): ChangedCall[] =>
    readFileSync(log, 'utf8')
      .split('\n')
      .flatMap((line) => {
        const [, changed, path] = /^(\w+) \d+ (.*)$/.exec(line) ?? [];
        return path === undefined ? [] : [{ call: changed, path }];
      });
  return { env, read };
}
