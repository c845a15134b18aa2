/** Labels that have room next to their points. */
import { describe, expect, it } from 'vitest';
import { freePlaces } from '../../../cli/page/sections/item-map.ts';

const size = { width: 400, height: 300 };

describe('labels', () => {
  it('of earlier points take the room', () => {
    expect([
      ...freePlaces(
        [
          { left: 10, top: 50, letters: 12 },
          { left: 12, top: 52, letters: 12 },
          { left: 12, top: 70, letters: 12 },
        ],
        size,
      ),
    ]).toEqual([0, 2]);
  });

  it('extend to the left in the right half', () => {
    expect([
      ...freePlaces(
        [
          { left: 99, top: 50, letters: 20 },
          { left: 75, top: 50, letters: 3 },
        ],
        size,
      ),
    ]).toEqual([0]);
    expect([
      ...freePlaces(
        [
          { left: 49, top: 50, letters: 10 },
          { left: 51, top: 50, letters: 10 },
        ],
        size,
      ),
    ]).toEqual([0, 1]);
  });

  it('that do not fit are left out', () => {
    expect([
      ...freePlaces(
        [
          { left: 5, top: 50, letters: 80 },
          { left: 95, top: 50, letters: 80 },
        ],
        size,
      ),
    ]).toEqual([]);
    expect([...freePlaces([], size)]).toEqual([]);
  });
});
