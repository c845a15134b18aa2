/** Attacks in processes of their own: each is a script that prints {"counts", "finds"}. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { prepareSwiftShader } from '../../../test/support/gpu/swiftshader.ts';
import type { MakeAttack } from '../attack.ts';
import { endOf, program, start } from '../commands.ts';

const PATIENCE_MILLISECONDS = 600_000;
const python = process.env.PYTHON ?? 'python3';

interface Compared {
  readonly counts: Readonly<Record<string, number>>;
  readonly finds: readonly string[];
}

/** Where a script of this folder runs: its arguments are SEED, FOLDER and what `args` adds. */
interface Script {
  readonly file: string;
  readonly args?: readonly string[];
  readonly command?: string;
  /** Changes the environment; gives the reason why the script cannot run. */
  readonly prepare?: (env: Record<string, string | undefined>) => string | undefined;
}

const running =
  (...scripts: readonly Script[]): MakeAttack =>
  ({ folder, random, count, find }) => {
    const env: Record<string, string | undefined> = { ...process.env };
    return {
      prepare: async () => scripts[0].prepare?.(env),
      round: async () => {
        const seed = random(2 ** 30);
        for (const { file, args = [], command } of scripts) {
          const own = join(folder, 'set');
          mkdirSync(own);
          const main = join(import.meta.dirname, '..', file);
          const words = [`${seed}`, own, ...args];
          const patience = PATIENCE_MILLISECONDS;
          const run = command
            ? start([main, ...words], { command, env, stdout: 'read', patience })
            : start(words, { main, env, stdout: 'read', patience });
          const ended = await run.ended;
          rmSync(own, { recursive: true });
          if (ended.code !== 0) {
            find(`${file}, seed ${seed}, ends with ${endOf(ended)} ${ended.stdout}`);
            continue;
          }
          const { counts, finds } = JSON.parse(ended.stdout) as Compared;
          for (const [what, number] of Object.entries(counts)) count(what, number);
          for (const text of finds) find(`${file}, seed ${seed}: ${text}`);
        }
      },
    };
  };

/** A script that needs Python, numpy and pyarrow: `python3`, or the one of PYTHON. */
const inPython = (file: string): Script => ({
  file: `oracle/${file}`,
  command: python,
  args: [process.execPath, program],
  prepare: (env) => {
    Object.assign(env, {
      // The package of Python runs the built program.
      PYTHONPATH: join(import.meta.dirname, '../../../python'),
      PYTHONDONTWRITEBYTECODE: '1',
      FACTORFLOW_MAIN: program,
      FACTORFLOW_NODE: process.execPath,
    });
    const { status } = spawnSync(python, ['-c', 'import numpy, pyarrow'], { stdio: 'ignore' });
    if (status === 0) return undefined;
    return `${python} with numpy and pyarrow is not there. Set PYTHON to one, such as that of a venv after pip install numpy pyarrow`;
  },
});

/** Small fits in one session: memory stays as it is. */
export const smallFits = running({ file: '../../test/support/many-fits.ts', args: ['200'] });

/** A thousand pipelines in one session: memory, files and threads stay as they are. */
export const pipelines = running({ file: 'programs/many-pipelines.ts', args: ['1000'] });

/** Ratings of odd shapes on each kind of device. */
export const shapesOnCpu = running({ file: 'programs/odd-shapes.ts', args: ['cpu', '6'] });
export const shapesOnGpu = running({
  file: 'programs/odd-shapes.ts',
  args: ['gpu', '2'],
  prepare: prepareSwiftShader,
});

/**
 * Compares models, predictions, errors, rankings and lists of small random sets with float64 formulas in
 * Python, which share no code with the program, and every Arrow type in Parquet with pyarrow's reading.
 */
export const oracle = running(inPython('compare.py'), inPython('arrow_types.py'));

/** Threads of Python on one model that another thread trains again. */
export const pythonThreads = running(inPython('threads.py'));
