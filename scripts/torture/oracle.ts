import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { MakeAttack } from './attack.ts';
import { runProgram } from './children.ts';
import { program } from './commands.ts';

const python = process.env.PYTHON ?? 'python3';

/** The package of Python runs the built program. */
const env = {
  ...process.env,
  PYTHONPATH: join(import.meta.dirname, '../../python'),
  PYTHONDONTWRITEBYTECODE: '1',
  FACTORFLOW_MAIN: program,
  FACTORFLOW_NODE: process.execPath,
};

interface Compared {
  readonly counts: Readonly<Record<string, number>>;
  readonly finds: readonly string[];
}

/** Scripts that need Python, numpy and pyarrow: `python3`, or the one of PYTHON. */
const inPython =
  (name: string, scripts: readonly string[]): MakeAttack =>
  ({ folder, random, count, find }) => ({
    name,
    prepare: async () => {
      const { status } = spawnSync(python, ['-c', 'import numpy, pyarrow'], { stdio: 'ignore' });
      if (status === 0) return undefined;
      return `${python} with numpy and pyarrow is not there. Set PYTHON to one, such as that of a venv after pip install numpy pyarrow`;
    },
    round: async () => {
      const seed = random(2 ** 30);
      for (const script of scripts) {
        const own = join(folder, 'set');
        mkdirSync(own);
        const path = join(import.meta.dirname, 'oracle', script);
        const args = [path, `${seed}`, own, process.execPath, program];
        const { code, output } = await runProgram(python, args, env);
        rmSync(own, { recursive: true });
        if (code !== 0) find(`${script} ends with ${code}, seed ${seed}: ${output.trimEnd()}`);
        else {
          const { counts, finds } = JSON.parse(output) as Compared;
          for (const [what, number] of Object.entries(counts)) count(what, number);
          for (const text of finds) find(text);
        }
      }
    },
  });

/**
 * Compares models, predictions, errors, rankings and lists of small random sets with float64 formulas in
 * Python, which share no code with the program, and every Arrow type in Parquet with pyarrow's reading.
 */
export const oracle = inPython('oracle', ['compare.py', 'arrow_types.py']);

/** Threads of Python on one model that another thread trains again. */
export const pythonThreads = inPython('Python threads', ['threads.py']);
