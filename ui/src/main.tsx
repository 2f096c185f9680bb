import { render } from "preact";
import "./app.css";
import { App } from "./app";
import { startSession, watchLinks } from "./session";

const root = document.getElementById("app");
if (root) {
  watchLinks();
  void startSession();
  render(<App />, root);
}
