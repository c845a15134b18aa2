/**
 * Φ(x), the standard Gaussian's distribution function, to about 1e-15 (J. F. Hart et al., Computer
 * Approximations, 1968, no. 5666, as given by G. West, Better approximations to cumulative normal functions,
 * 2005).
 */
export function normalCdf(x: number): number {
  const z = Math.abs(x);
  if (z > 37) return x > 0 ? 1 : 0;
  const density = Math.exp((-z * z) / 2);
  const upper = z < 7.071_067_811_865_47 ? (density * numerator(z)) / denominator(z) : density / tail(z);
  return x > 0 ? 1 - upper : upper;
}

/** φ(x), the standard Gaussian's density. */
export function normalDensity(x: number): number {
  return Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
}

function numerator(z: number): number {
  let p = 3.526_249_659_989_11e-2;
  p = p * z + 0.700_383_064_443_688;
  p = p * z + 6.373_962_203_531_65;
  p = p * z + 33.912_866_078_383;
  p = p * z + 112.079_291_497_871;
  p = p * z + 221.213_596_169_931;
  return p * z + 220.206_867_912_376;
}

function denominator(z: number): number {
  let q = 8.838_834_764_831_84e-2;
  q = q * z + 1.755_667_163_182_64;
  q = q * z + 16.064_177_579_207;
  q = q * z + 86.780_732_202_946_1;
  q = q * z + 296.564_248_779_674;
  q = q * z + 637.333_633_378_831;
  q = q * z + 793.826_512_519_948;
  return q * z + 440.413_735_824_752;
}

function tail(z: number): number {
  return (z + 1 / (z + 2 / (z + 3 / (z + 4 / (z + 0.65))))) * 2.506_628_274_631;
}
