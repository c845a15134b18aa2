/** Waves and orders in which the blocks of a grid are visited. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blockWaves } from '../../engine/plan/grid-order.ts';
import { CounterRandom, randomOrder } from '../../engine/random.ts';

const size = fc.integer({ min: 1, max: 12 });

describe('the waves of a grid', () => {
  it('have every block once, and no two of a wave share a row band or a column band', () => {
    fc.assert(
      fc.property(size, size, fc.nat(), (rows, columns, seed) => {
        const waves = blockWaves(rows, columns, new CounterRandom(seed));
        expect(waves).toHaveLength(Math.max(rows, columns));
        expect(new Set(waves.flat().map(({ row, column }) => row * columns + column)).size).toBe(rows * columns);
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
        expect([...randomOrder(count, new CounterRandom(seed))].sort((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, i) => i));
      }),
    );
  });
});
