import { expect, it } from 'vitest';
import { alsDefaults } from '../../../operators/als/params.ts';
import { unsolvedAdvice } from '../../../operators/als/solved-loss.ts';

it.each([
  ['Lower regParam (λ), which is 1e+30', { regParam: 1e30 }, {}],
  [
    /^Scale the ratings up, of which this row's largest is 9\.18.*e-40, or lower regParam \(λ\), which is 0\.1$/,
    { regParam: 0.1 },
    { unit: 2 ** -132 },
  ],
  ['Raise regParam (λ), which is 0', { regParam: 0 }, {}],
  ['Raise regParam (λ), which is 0.05', { regParam: 0.05, implicitPrefs: true, alpha: 1e6 }, {}],
  ['Raise regParam (λ), which is 0.001', { regParam: 0.001 }, { unit: 4 ** 6 }],
  [
    "Scale the ratings down, of which this row's largest is 2e+30",
    { regParam: 0 },
    { largest: 5e29, unit: 4 },
  ],
  ['Raise regParam (λ), which is 0.1, or scale the ratings down', { regParam: 0.1 }, { largest: 0 }],
  [
    /^Neither regParam \(λ\), which is 0.1, nor the ratings, .* 5, explain it.* report it as a bug$/,
    { regParam: 0.1 },
    {},
  ],
])('the advice for a row without a solution follows its cause: %s', (expected, params, sizes) => {
  const all = { ...alsDefaults, ...params };
  const advice = unsolvedAdvice({ params: all, unit: 1, count: 900, largest: 5, ...sizes });
  if (typeof expected === 'string') expect(advice).toBe(expected);
  else expect(advice).toMatch(expected);
});
