/**
 * docs/measured/performance.md: bench/RESULTS.md. The package leaves bench/ out, so links to its files become
 * their paths.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

const introduction = `# Performance

Figures are measured by the programs in \`bench/\` of the repository; each names its machine, date and command. Speed on another machine differs:
run the same command there.
`;

export function performancePage(root: string): string {
  const results = join(root, 'bench/RESULTS.md');
  if (!existsSync(results))
    return `${introduction}\nThey are written to \`bench/RESULTS.md\`, from which this page is made (\`npm run docs\`).\n`;
  const body = readFileSync(results, 'utf8').replace(/^# .*\n+/, '');
  return `${introduction}\n${body.replaceAll(/\[[^\]]*\]\((?![a-z]+:|#|\/)([^)\s]+)\)/g, (_, link: string) => `\`${posix.join('bench', link)}\``)}`;
}
