/**
 * The entry for `require('factorflow')`, so that a Node that cannot require ES modules gets the message for
 * it and not its own.
 */
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 12)) {
  throw new Error(
    `FactorFlow needs Node 22.12 or newer, and this is ${process.versions.node}. Install a newer one from https://nodejs.org, or give your project its own: after npm install node@24, npx and npm scripts there run with it`,
  );
}
module.exports = require('./programs/index.js');
