import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { MakeAttack } from './attack.ts';
import { runProgram } from './children.ts';
import { program } from './commands.ts';

const python = process.env.PYTHON ?? 'python3';
const scripts = ['compare.py', 'arrow_types.py'].map((name) => join(import.meta.dirname, 'oracle', name));

interface Compared {
  readonly counts: Readonly<Record<string, number>>;
  readonly finds: readonly string[];
}

/**
 * Compares models, predictions, errors, rankings and lists of small random sets with float64 formulas in
 * Python, which share no code with the program, and every Arrow type in Parquet with pyarrow's reading. Needs
 * Python, numpy and pyarrow: `python3`, or the one of PYTHON.
 */
export const oracle: MakeAttack = ({ folder, random, count, find }) => ({
  name: 'oracle',
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
      const { code, output } = await runProgram(python, [script, `${seed}`, own, process.execPath, program]);
      rmSync(own, { recursive: true });
      if (code !== 0) find(`${basename(script)} ends with ${code}, seed ${seed}: ${output.trimEnd()}`);
      else {
        const { counts, finds } = JSON.parse(output) as Compared;
        for (const [what, number] of Object.entries(counts)) count(what, number);
        for (const text of finds) find(text);
      }
    }
  },
});
