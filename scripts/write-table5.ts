/** Writes docs/measured/table5.md, which takes half a minute. */
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { table5Line, table5Machines, table5Page, table5Sets } from './docs/table5-page.ts';

const lines = table5Sets.flatMap((set) => table5Machines.map((machine) => table5Line(set, machine)));
writeFileSync(join(resolve(import.meta.dirname, '..'), 'docs/measured/table5.md'), table5Page(lines));
console.log('wrote docs/measured/table5.md');
