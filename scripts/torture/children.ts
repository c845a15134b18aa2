import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { prepareSwiftShader } from '../../test/support/gpu/swiftshader.ts';
import type { MakeAttack } from './attack.ts';

const PATIENCE_MILLISECONDS = 600_000;
const FITS = 200;
const PIPELINES = 1000;
const MOST_MIB = 600;
const SHAPES = 6;

/** Small fits in one session, in a process of their own: memory stays as it is. */
export const smallFits: MakeAttack = ({ count, find }) => ({
  name: 'small fits',
  round: async () => {
    const { output, code } = await script('many-fits.ts', [`${FITS}`]);
    if (code !== 0) return find(`small fits end with ${code}: ${output}`);
    const { late, fits } = JSON.parse(output) as { readonly late: number; readonly fits: number };
    count('fits', fits);
    if (late > MOST_MIB) find(`${fits} small fits: ${late} MiB resident`);
  },
});

/** A thousand pipelines in one session, in a process of their own: memory, files and threads stay as they are. */
export const pipelines: MakeAttack = ({ random, count, find }) => ({
  name: 'pipelines',
  round: async () => {
    const seed = random(2 ** 30);
    const { output, code } = await script('many-pipelines.ts', [`${PIPELINES}`, `${seed}`]);
    if (code !== 0) return find(`pipelines, seed ${seed}, end with ${code}: ${output}`);
    count('pipelines', PIPELINES);
    const { finds } = JSON.parse(output) as { readonly finds: readonly string[] };
    for (const text of finds) find(`pipelines, seed ${seed}: ${text}`);
  },
});

/** Ratings of odd shapes on one kind of device, in a process of its own. */
const shapesOn =
  (device: 'cpu' | 'gpu'): MakeAttack =>
  ({ random, count, find }) => {
    const env: Record<string, string | undefined> = { ...process.env };
    return {
      name: `odd shapes on ${device}`,
      prepare: async () => (device === 'gpu' ? prepareSwiftShader(env) : undefined),
      round: async () => {
        const seed = random(2 ** 30);
        const { output, code } = await script(
          'odd-shapes.ts',
          [device, `${seed}`, `${device === 'gpu' ? 2 : SHAPES}`],
          env,
        );
        if (code !== 0) return find(`odd shapes on ${device}, seed ${seed}, end with ${code}: ${output}`);
        const { shapes, finds } = JSON.parse(output) as {
          readonly shapes: number;
          readonly finds: readonly string[];
        };
        count('shapes', shapes);
        for (const text of finds) find(text);
      },
    };
  };

export const shapesOnCpu = shapesOn('cpu');
export const shapesOnGpu = shapesOn('gpu');

interface Output {
  /** Its stdout; where it failed its stderr as well. */
  readonly output: string;
  readonly code: number | string;
}

/** Runs a script of this folder. */
function script(name: string, args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Output> {
  return runProgram(process.execPath, [join(import.meta.dirname, name), ...args], env);
}

/** Runs any program to its end, or for ten minutes. */
export function runProgram(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<Output> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MILLISECONDS);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ output: code === 0 ? stdout : `${stdout}${stderr}`, code: code ?? String(signal) });
    });
  });
}
