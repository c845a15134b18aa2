/**
 * `factorflow/arrow`: the copy of apache-arrow that FactorFlow uses. Batches for its sources must come from
 * this copy, and package managers such as pnpm do not let a program import the packages of its packages.
 */
export * from 'apache-arrow';
