/** The plans of docs/measured/table5.md are those that the planner makes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { everyNth } from '../support/deep.ts';
import { table5Line, table5Machines, table5Sets } from '../../scripts/docs/table5-page.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/measured/table5.md'), 'utf8');
/** Problems whose plans have thousands of blocks are planned on one machine each. */
const large = ['SparkALS', 'Factorbird', 'Facebook', 'Facebook, f = 100'];
const allCases = table5Sets.flatMap((set) =>
  table5Machines
    .filter(({ count, gigabytes }) => !large.includes(set.name) || (count === 1 && gigabytes === 141))
    .map((machine) => [set.name, machine, set] as const),
);

const cases = everyNth(allCases, 5);

describe('table 5', () => {
  it.each(cases)(
    '%s on %j',
    (_, machine, set) => {
      expect(page).toContain(`\n${table5Line(set, machine)}\n`);
    },
    240_000,
  );
});
