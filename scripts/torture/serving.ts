import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, globSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { MakeAttack } from './attack.ts';
import { program, ratings, runCommand } from './commands.ts';

const CLIENTS = 4;
const MOST_LIFE_MILLISECONDS = 2500;
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGKILL'] as const;
/** A server that takes longer to start or to end hangs. */
const PATIENCE_MILLISECONDS = 60_000;

/**
 * Ends `serve` by a signal at a random moment among requests, while its model is replaced, damaged and loaded
 * again: until the signal each answer is right for the version that it names, and each server starts again.
 */
export const serving: MakeAttack = ({ folder, random, count, find }) => {
  const model = join(folder, 'model');
  const models = ['first', 'second'].map((name) => join(folder, name));
  const answers = new Answers(models.length, count);

  async function changeModel(server: ChildProcess, state: State): Promise<void> {
    while (!state.ending) {
      const change = random(3);
      if (change === 0) replaceModel(model, models[random(2)]);
      else if (change === 1) damageModel(model, random);
      else server.kill('SIGHUP');
      count('changes');
      await pause(random(300));
    }
  }

  async function ask(address: string, state: State): Promise<void> {
    while (!state.ending) {
      const fault = await answers.ask(`${address}/recommend/10136?n=5`).catch(String);
      // A request that was running when the signal came may fail.
      if (state.ending) return;
      if (fault !== undefined) return find(`serve before its end: ${fault}`);
    }
  }

  async function endAmongRequests(): Promise<void> {
    rmSync(model, { recursive: true, force: true });
    cpSync(models[random(2)], model, { recursive: true });
    const { server, address, ended } = await startServer(model);
    if (address === undefined) return find(`serve does not start: ${(await ended).stderr}`);
    const state: State = { ending: false };
    const work = [changeModel(server, state), ...Array.from({ length: CLIENTS }, () => ask(address, state))];
    await pause(random(MOST_LIFE_MILLISECONDS));
    const signal = SIGNALS[random(SIGNALS.length)];
    state.ending = true;
    server.kill(signal);
    const end = await ended;
    await Promise.all(work);
    const isGood = signal === 'SIGKILL' ? end.signal === signal : end.code === 0;
    count(isGood ? `ended by ${signal}` : 'found');
    if (!isGood) find(`serve after ${signal}: ${end.signal ?? end.code}, ${end.stderr}`);
  }

  return {
    name: 'serve',
    prepare: async () => {
      for (const [seed, to] of models.entries()) await trainModel(to, seed);
      return undefined;
    },
    round: async () => {
      for (let left = 3; left > 0; left--) await endAmongRequests();
    },
  };
};

/** The answers to one request, by version of the model. */
class Answers {
  readonly #known = new Map<string, string>();
  readonly #models: number;
  readonly #count: (outcome: string) => void;

  constructor(models: number, count: (outcome: string) => void) {
    [this.#models, this.#count] = [models, count];
  }

  /** Sends the request. Returns the fault of the answer; undefined for a right one. */
  async ask(url: string): Promise<string | undefined> {
    const response = await fetch(url);
    const [text, version] = [await response.text(), response.headers.get('x-factorflow-model') ?? ''];
    if (response.status !== 200) return `${response.status} ${text}`;
    const known = this.#known.get(version) ?? text;
    this.#known.set(version, known);
    if (this.#known.size > this.#models) return `the version ${version} is of no model`;
    this.#count(`answers of model ${[...this.#known.keys()].indexOf(version) + 1}`);
    return text === known ? undefined : `version ${version} gave ${known}, and now ${text}`;
  }
}

/** Puts a copy of a model into place, as the documented cron job does. */
function replaceModel(model: string, other: string): void {
  const [next, old] = [`${model}-next`, `${model}-old`];
  cpSync(other, next, { recursive: true });
  rmSync(old, { recursive: true, force: true });
  renameSync(model, old);
  renameSync(next, model);
}

/** Cuts a file of the model short. */
function damageModel(model: string, random: (below: number) => number): void {
  const files = globSync('*/*', { cwd: model }).sort();
  const file = join(model, files[random(files.length)]);
  truncateSync(file, random(statSync(file).size));
}

interface State {
  /** True once the server was sent its signal. */
  ending: boolean;
}

interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

/** Trains a small model for a server. */
export async function trainModel(to: string, seed: number): Promise<void> {
  const size = ['--rank', '8', '--max-iter', '1', '--device', 'cpu', '--seed', `${seed}`];
  const { code, stderr } = await runCommand(['train', ratings, ...size, '--model-dir', to, '--quiet']);
  if (code !== 0) throw new Error(`train ended with ${code}: ${stderr}`);
}

/** Starts `serve`; the address is undefined if the server ends before it listens. */
export async function startServer(model: string, ...flags: readonly string[]) {
  const line = [program, 'serve', model, '--port', '0', '--poll', '0.1', ...flags];
  const server = spawn(process.execPath, line, { stdio: ['ignore', 'ignore', 'pipe'] });
  const timer = setTimeout(() => void server.kill('SIGKILL'), PATIENCE_MILLISECONDS);
  const { promise: listening, resolve } = Promise.withResolvers<string | undefined>();
  let stderr = '';
  server.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    const address = / at (http:\/\/[^:]+:\d+)/.exec(stderr)?.[1];
    if (address !== undefined) resolve(address);
  });
  const ended = new Promise<End>((done) => {
    server.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve(undefined);
      done({ code, signal, stderr });
    });
  });
  return { server, address: await listening, ended };
}
