import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process';
import { resolve } from 'node:path';

export interface Outcome {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Started {
  readonly child: ChildProcess;
  readonly outcome: Promise<Outcome>;
  /** Resolves with the match once stderr matches; rejects when the process ends before. */
  stderrMatches(pattern: RegExp): Promise<RegExpExecArray>;
}

export interface ProcessOptions {
  readonly stdin?: 'pipe';
  /** A pipe whose text the outcome has (the default), a pipe that is not read, nothing, or an open file. */
  readonly stdout?: 'unread' | 'ignore' | number;
  readonly env?: NodeJS.ProcessEnv;
}

/** Starts a program with its arguments in the project's folder. */
export function startProcess(words: readonly string[], options: ProcessOptions = {}): Started {
  const { stdin = 'ignore', stdout: out, env } = options;
  const isUnread = out === 'unread';
  const stdio: StdioOptions = [stdin, isUnread ? 'pipe' : (out ?? 'pipe'), 'pipe'];
  const [command, ...args] = words;
  const child = spawn(command, args, {
    cwd: resolve(import.meta.dirname, '../..'),
    stdio,
    env: { ...process.env, NO_COLOR: '1', ...env },
  });
  let [stdout, stderr] = ['', ''];
  const waiting = new Set<() => void>();
  if (!isUnread) child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    for (const look of waiting) look();
  });
  const outcome = new Promise<Outcome>((done, fail) => {
    child.on('error', fail);
    // A pipe that is not read stays open.
    child.on(isUnread ? 'exit' : 'close', (code, signal) => done({ code, signal, stdout, stderr }));
  });
  const stderrMatches = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((done, fail) => {
      const look = () => {
        const match = pattern.exec(stderr);
        if (match === null) return;
        waiting.delete(look);
        done(match);
      };
      waiting.add(look);
      look();
      void outcome.then(() => fail(new Error(`it ended before stderr matched ${pattern}: ${stderr}`)));
    });
  return { child, outcome, stderrMatches };
}
