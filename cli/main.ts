#!/usr/bin/env node
import { tooOldNode } from './node-version.ts';

// Nothing else is loaded before this check: older versions could not even parse it.
const problem = tooOldNode(process.versions.node);
if (problem === undefined) {
  const { runCli } = await import('./run-cli.ts');
  process.exitCode = await runCli(process.argv.slice(2));
} else {
  process.stderr.write(`factorflow: ${problem}\n`);
  process.exitCode = 2;
}
