/** Each device has a part, even if one row has most of the ratings. */
import { describe, expect, it } from 'vitest';
import { balancedRanges } from '../../../operators/ratings/row-ranges.ts';
import { boundAls, boundSgd, listsOfRun } from '../../support/steps/bound-problems.ts';
import { gpuInfo } from '../../support/steps/small-problems.ts';

describe('a row with most of the ratings', () => {
  const all = Array.from({ length: 60 }, (_, column) => column);
  const rows = [[0], [1], all];
  const devices = [gpuInfo(0), gpuInfo(1), gpuInfo(2)];

  it('leaves rows for the parts behind it', () => {
    const offsets = Int32Array.of(0, 1, 2, 62);
    expect(balancedRanges(offsets, 3)).toHaveLength(2);
    expect(balancedRanges(offsets, 3, undefined, { exactly: true })).toEqual([
      { from: 0, to: 1 },
      { from: 1, to: 2 },
      { from: 2, to: 3 },
    ]);
  });

  it('is planned, bound and expanded by als on three devices', () => {
    const problem = boundAls({ rows, columns: 60, test: false, devices }, {});
    expect(listsOfRun(problem, ['good']).map(({ name }) => name)).toContain('round 1');
  });

  it('is planned, bound and expanded by sgd on three devices', async () => {
    const wide = [...Array.from({ length: 60 }, () => [2]), all];
    const problem = await boundSgd({ rows: wide, columns: 60, test: false, devices }, {});
    expect(listsOfRun(problem, ['good']).map(({ name }) => name)).toContain('round 1');
  });
});
