// A view that fails says so, and where, instead of staying as it was.
import {Component, html} from "./ui.js";

/** Where an error was thrown: a file of this page, and a line in it. */
const placeOf = ({stack}) => stack?.match(/\/dashboard\/([\w./-]+:\d+):\d+/)?.[1];

/** Shows what is in it, or the error that this threw. */
export class Boundary extends Component {
  constructor() {
    super();
    this.state = {error: null};
  }

  static getDerivedStateFromError(error) {
    return {error};
  }

  render({children}, {error}) {
    if (!error) return children;
    const place = placeOf(error);
    return html`<h1>This view failed</h1>
      <p class="problem" role="alert">It is a bug of this page: ${String(error.message ?? error)}${place && ` (${place})`}.</p>
      <p class="buttons"><button type="button" onClick=${() => this.setState({error: null})}>Try again</button> <a class="button" href="#/">Overview</a></p>`;
  }
}
