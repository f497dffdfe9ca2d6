/** The Java of docs/assertion.md. */
import t from 'tap';
import { java, javac } from '../../support/javac.js';
import { checkSnippet } from './assertion-snippets.js';

t.setTimeout(120_000);

const driver = `
class Main {
  public static void main(String[] arguments) throws Exception {
    for (String line : java.nio.file.Files.readAllLines(java.nio.file.Path.of(arguments[0]), java.nio.charset.StandardCharsets.ISO_8859_1)) {
      String[] parts = line.split("\\t");
      try { System.out.println("holds " + Assertions.verify(parts[0], parts[1], parts[2]).get("sub")); }
      catch (Exception refused) { System.out.println("refused"); }
    }
  }
}
`;

t.test('forged, replayed, expired and misdirected assertions are refused by the snippet in Java', async (t) => {
  checkSnippet(t, {
    language: 'java',
    file: 'Assertions.java',
    driver,
    commands: [
      [javac, 'Assertions.java'],
      [java, '-cp', '.', 'Main'],
    ],
  });
});
