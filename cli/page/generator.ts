/** The mark by which a report is known as one of this program: it stands in the first bytes of each. */
export const GENERATOR = '<meta name="generator" content="factorflow">';
