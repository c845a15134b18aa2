import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { trainOptions } from '../../cli/options/training/training-options.ts';
import { type Options, shownFlag } from '../../cli/options/option.ts';
import { ALS, type JsonObject, SGD } from '../../index.ts';
import { alsTable } from '../../operators/als/params.ts';
import type { Param } from '../../operators/params/param.ts';
import { sgdTable } from '../../operators/sgd/params.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';
import { cpuSession } from '../support/cpu-session.ts';

const docs = (page: string) => readFileSync(join(resolve(import.meta.dirname, '../../docs'), page), 'utf8');
const session = await cpuSession({ workers: 1 });

describe.each([
  ['ALS', alsTable.params, ALS],
  ['SGD', sgdTable.params, SGD],
] as const)('every parameter of %s', (_, params, Trainer) => {
  const entries = Object.entries(params as Readonly<Record<string, Param>>);

  it.each(entries)('%s is a flag with its help, and in the documentation', (name, { help }) => {
    expect((trainOptions as Options)[name].describe).toBe(help);
    const { flag, describe } = shownFlag(name, (trainOptions as Options)[name]);
    expect(docs('reference/cli.md')).toContain(`| \`--${flag}\` |`);
    expect(docs('reference/cli.md')).toContain(`| ${describe.replaceAll('|', '\\|')}`);
    expect(docs('reference/api.md')).toMatch(new RegExp(`^  readonly ${name}\\??: `, 'm'));
  });

  it('is in the metadata of a model, where it is set', async () => {
    const rows = ratingBatches(randomRatings(1, 20, 15, 100));
    // Groups are of several devices, and weights and half-lives of implicit data.
    const unset = (name: string) =>
      ['kernel', 'partitionGroups', 'regParam', 'unobservedWeight', 'halfLife', 'now'].includes(name);
    const set = Object.fromEntries(
      entries
        .filter(([name, { fallback }]) => fallback === undefined && !unset(name))
        .map(([name, { kind }]) => [
          name,
          kind !== 'text' ? 1 : name.startsWith('partition') ? '1,1' : 'rmse',
        ]),
    );
    const model = await new Trainer({ rank: 2, maxIter: 1, ...set }).fit(session.from(rows), {
      validation: session.from(rows),
    });
    expect(Object.keys(model.metadata.params as JsonObject).sort()).toEqual(
      entries
        .map(([name]) => name)
        .filter((name) => name === 'regParam' || !unset(name))
        .sort(),
    );
  });
});
