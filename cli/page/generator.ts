/** Identifies a report of this program; it is in the first bytes of each. */
export const GENERATOR = '<meta name="generator" content="factorflow">';
