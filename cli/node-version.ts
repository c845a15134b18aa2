/** The oldest Node that runs FactorFlow, as in package.json's "engines". */
const OLDEST = [22, 12] as const;

/** The message for a Node that is too old ("20.1.0"); undefined for one that is new enough. */
export function tooOldNode(version: string): string | undefined {
  const [major, minor] = version.split('.').map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return undefined;
  return `needs Node ${OLDEST.join('.')} or newer, and this is ${version}. Install a newer one from https://nodejs.org, or run npx factorflow inside the project, which brings its own`;
}
