import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { MakeAttack } from './attack.ts';
import { runProgram } from './children.ts';
import { program } from './commands.ts';

const python = process.env.PYTHON ?? 'python3';
const compare = join(import.meta.dirname, 'oracle/compare.py');

interface Compared {
  readonly counts: Readonly<Record<string, number>>;
  readonly finds: readonly string[];
}

/**
 * Compares models, predictions, errors, rankings and lists of small random sets with float64 formulas in
 * Python, which share no code with the program. Needs Python and numpy: `python3`, or the one of PYTHON.
 */
export const oracle: MakeAttack = ({ folder, random, count, find }) => ({
  name: 'oracle',
  prepare: async () => {
    const { status } = spawnSync(python, ['-c', 'import numpy'], { stdio: 'ignore' });
    if (status === 0) return undefined;
    return `${python} with numpy is not there. Set PYTHON to one, such as that of a venv after pip install numpy`;
  },
  round: async () => {
    const [seed, own] = [random(2 ** 30), join(folder, 'set')];
    mkdirSync(own);
    const { code, output } = await runProgram(python, [compare, `${seed}`, own, process.execPath, program]);
    rmSync(own, { recursive: true });
    if (code !== 0) return find(`the oracle ends with ${code}, seed ${seed}: ${output.trimEnd()}`);
    const { counts, finds } = JSON.parse(output) as Compared;
    for (const [what, number] of Object.entries(counts)) count(what, number);
    for (const text of finds) find(text);
  },
});
