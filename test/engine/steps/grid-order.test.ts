/** The waves and the order of visits to the blocks of a grid. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blockWaves, gridOrder, turnsOf } from '../../../engine/plan/grid-order.ts';
import { CounterRandom, randomOrder } from '../../../engine/random.ts';

const size = fc.integer({ min: 1, max: 12 });

describe('the waves of a grid', () => {
  it('have every block once, and no two of a wave share a row band or a column band', () => {
    fc.assert(
      fc.property(size, size, fc.nat(), (rows, columns, seed) => {
        const waves = blockWaves(rows, columns, new CounterRandom(seed));
        expect(waves).toHaveLength(Math.max(rows, columns));
        expect(new Set(waves.flat().map(({ row, column }) => row * columns + column)).size).toBe(
          rows * columns,
        );
        expect(waves.flat()).toHaveLength(rows * columns);
        for (const wave of waves) {
          expect(wave).toHaveLength(Math.min(rows, columns));
          expect(new Set(wave.map(({ row }) => row)).size).toBe(wave.length);
          expect(new Set(wave.map(({ column }) => column)).size).toBe(wave.length);
        }
      }),
    );
  });

  it('are the same for a seed, and others in each epoch', () => {
    const random = new CounterRandom(7);
    expect(blockWaves(5, 9, random.derive(1))).toEqual(blockWaves(5, 9, random.derive(1)));
    expect(blockWaves(5, 9, random.derive(1))).not.toEqual(blockWaves(5, 9, random.derive(2)));
  });

  it('are built of orders that have every number once', () => {
    fc.assert(
      fc.property(fc.nat(200), fc.nat(), (count, seed) => {
        expect([...randomOrder(count, new CounterRandom(seed))].sort((a, b) => a - b)).toEqual(
          Array.from({ length: count }, (_, i) => i),
        );
      }),
    );
  });
});

describe('the order by turns', () => {
  const grids = [
    [1, 4],
    [2, 8],
    [2, 3],
    [3, 7],
    [4, 16],
    [5, 2],
  ] as const;

  it.each(
    grids.flatMap(([rows, columns]) =>
      [false, true].map((stays) => ({ rows, columns, turns: { seed: 7, stays } })),
    ),
  )('visits each block once, a column by one row at a time: %j', ({ rows, columns, turns }) => {
    for (let round = 1; round <= 6; round++) {
      const order = gridOrder('turns', { rows, columns }, turns, round);
      expect(new Set(order.map(({ row, column }) => row * columns + column)).size).toBe(rows * columns);
      expect(order).toHaveLength(rows * columns);
      for (let column = 0; column < columns; column++)
        expect(order.filter((block) => block.column === column).map(({ row }) => row)).toEqual(
          turnsOf(rows, column, turns, round),
        );
      // Rows go on together: at most one group apart at a time.
      const groups = order.map(({ row, column }) => [row, column % rows] as const);
      for (let row = 0; row < rows; row++) {
        const own = groups.filter(([of]) => of === row).map(([, group]) => group);
        expect(own.filter((group, at) => group !== own[at - 1])).toHaveLength(new Set(own).size);
      }
    }
  });

  it.each(grids)(
    'of rows that stay begins with the columns with which each row ended: %i x %i',
    (rows, columns) => {
      const turns = { seed: 7, stays: true };
      for (let round = 1; round <= 6; round++)
        for (let column = 0; column < columns; column++)
          expect(turnsOf(rows, column, turns, round + 1)[0]).toBe(turnsOf(rows, column, turns, round).at(-1));
    },
  );

  it('is the same for a seed and a round, and another for others', () => {
    const order = (seed: number, round: number) =>
      JSON.stringify(gridOrder('turns', { rows: 2, columns: 12 }, { seed }, round));
    expect(order(1, 1)).toBe(order(1, 1));
    expect(new Set([order(1, 1), order(1, 2), order(1, 3), order(2, 1)]).size).toBe(4);
  });
});
